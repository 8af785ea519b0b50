package nntest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/gradfusion/gradfusion/nn"
)

// Wholes puts whole tensors together from the parts of several partners. It is
// safe for concurrent use.
type Wholes struct {
	mu      sync.Mutex
	tensors map[string][]float32
	// Differ names tensors that all partners should hold alike and do not.
	Differ []string
}

// Add puts in what one partner has of a tensor; part is nil for all of it.
func (w *Wholes) Add(name string, part *nn.Part, values []float32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tensors == nil {
		w.tensors = map[string][]float32{}
	}
	have, known := w.tensors[name]
	switch {
	case part == nil && !known:
		w.tensors[name] = slices.Clone(values)
	case part == nil && !slices.Equal(have, values):
		w.Differ = append(w.Differ, name)
	case part != nil:
		if !known {
			have = make([]float32, len(values)/part.Width()*part.Columns())
			w.tensors[name] = have
		}
		part.Put(have, values)
	}
}

// Compare returns an error that names the tensors which are not within x of
// want's root of the mean square, or that only one of the two has.
func (w *Wholes) Compare(want *Wholes, x float64) error {
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(want.tensors)) {
		a, b := w.tensors[name], want.tensors[name]
		if len(a) != len(b) {
			wrong = append(wrong, fmt.Sprintf("%s has %d elements, want %d", name, len(a), len(b)))
			continue
		}
		difference, square := 0.0, 0.0
		for i := range b {
			d := float64(a[i]) - float64(b[i])
			difference += float64(d * d)
			square += float64(float64(b[i]) * float64(b[i]))
		}
		if !(difference <= float64(x*x)*square) {
			wrong = append(wrong, fmt.Sprintf("%s is off by %.2g of its rms", name, math.Sqrt(difference/square)))
		}
	}
	if len(w.tensors) != len(want.tensors) {
		wrong = append(wrong, fmt.Sprintf("%d tensors, want %d", len(w.tensors), len(want.tensors)))
	}
	if len(w.Differ) > 0 {
		wrong = append(wrong, fmt.Sprintf("partners differ in %v", w.Differ))
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%v", wrong)
	}
	return nil
}
