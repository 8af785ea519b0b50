package optim

import (
	"math"

	"github.com/gradfusion/gradfusion/device"
)

// Layered is an Optimizer that scales the update of each parameter by norms of
// the whole of it, as LARS and LAMB do. Who has all parameters wholly need not
// know: Update computes the norms itself. Who has shards calls Norms, adds up
// the nodes of all shards of a parameter in order, and gives the totals to
// SetTotals, before each Update.
type Layered interface {
	Optimizer
	// Norms begins an Update of the same step, segments and scale: it may advance
	// moments. It returns the sums of squares, by block, of the weights and of
	// what is to be scaled; they are valid until the next call.
	Norms(step int, segments []Segment, scale float32) (weights, updates *Norm, err error)
	// SetTotals gives the next Update, for each segment, the sums of squares over
	// all of its parameter.
	SetTotals(weights, updates []float64)
}

// layers is what LARS and LAMB share.
type layers struct {
	weights, updates *Norm
	values           []Segment // segments whose "gradients" are the weights
	totals           [2][]float64
	given            bool // totals are those of the Update to come
}

func newLayers(dev device.Device, segments []Segment) (l layers, err error) {
	if l.weights, err = NewNorm(dev, segments); err != nil {
		return l, err
	}
	if l.updates, err = NewNorm(dev, segments); err != nil {
		return l, err
	}
	l.values = make([]Segment, len(segments))
	for i := range l.totals {
		l.totals[i] = make([]float64, len(segments))
	}
	return l, nil
}

// addWeights enqueues the squares of the weights.
func (l *layers) addWeights(segments []Segment) {
	for i := range segments {
		l.values[i] = segments[i]
		l.values[i].Grad = segments[i].Value()
	}
	l.weights.enqueue(l.values)
}

// SetTotals implements Layered.
func (l *layers) SetTotals(weights, updates []float64) {
	copy(l.totals[0], weights)
	copy(l.totals[1], updates)
	l.given = true
}

// complete begins the Update of o: unless SetTotals gave the totals, segments cover
// their parameters wholly, and it computes them.
func (l *layers) complete(o Layered, step int, segments []Segment, scale float32) error {
	if l.given {
		l.given = false
		return nil
	}
	if _, _, err := o.Norms(step, segments, scale); err != nil {
		return err
	}
	l.weights.Totals(segments, l.totals[0])
	l.updates.Totals(segments, l.totals[1])
	return nil
}

// norms returns the two norms that scale segment i.
func (l *layers) norms(i int) (weight, update float64) {
	return math.Sqrt(l.totals[0][i]), math.Sqrt(l.totals[1][i])
}
