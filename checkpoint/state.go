package checkpoint

import (
	"errors"
	"fmt"
	"math/bits"
	"unicode/utf8"

	"github.com/gradfusion/gradfusion/device"
)

// ErrDamaged is in the chain of every error about a file's content, as opposed
// to errors of reading it.
var ErrDamaged = errors.New("damaged checkpoint")

// State is everything that a run needs to go on.
type State struct {
	Metadata map[string]string
	Tensors  []Tensor
}

// Tensor is a named array. Data has the product of Shape elements of Type in
// row-major order, little-endian; an empty shape is one element.
type Tensor struct {
	Name  string
	Type  device.Type
	Shape []int
	Data  []byte
}

// Find returns the tensor of that name, or nil.
func (s *State) Find(name string) *Tensor {
	for i := range s.Tensors {
		if s.Tensors[i].Name == name {
			return &s.Tensors[i]
		}
	}
	return nil
}

// dtypes are the safetensors names of device.Type, in its order.
var dtypes = [...]string{"F32", "F16", "BF16", "F64", "I32", "I64", "I8", "U8"}

// bytesOf returns the bytes of an array, or false when they overflow.
func bytesOf(t device.Type, shape []int) (uint64, bool) {
	n := uint64(t.Size())
	for _, d := range shape {
		if d < 0 {
			return 0, false
		}
		over, product := bits.Mul64(n, uint64(d))
		if over != 0 {
			return 0, false
		}
		n = product
	}
	return n, n <= 1<<62
}

// check returns an error for a state that cannot be written.
func (s *State) check() error {
	if _, taken := s.Metadata[checksumKey]; taken {
		return fmt.Errorf("metadata %q is reserved", checksumKey)
	}
	for key, value := range s.Metadata {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return fmt.Errorf("metadata %q: text must be UTF-8", key)
		}
	}
	names := make(map[string]bool, len(s.Tensors))
	for i := range s.Tensors {
		t := &s.Tensors[i]
		if t.Name == "" || t.Name == metadataKey || names[t.Name] || !utf8.ValidString(t.Name) {
			return fmt.Errorf("tensor %d: the name %q is empty, reserved, taken or not UTF-8", i, t.Name)
		}
		names[t.Name] = true
		if int(t.Type) >= len(dtypes) {
			return fmt.Errorf("tensor %s: unknown element %s", t.Name, t.Type)
		}
		if _, ok := bytesOf(t.Type, t.Shape); !ok {
			return fmt.Errorf("tensor %s: there is no %v of %s", t.Name, t.Shape, t.Type)
		}
	}
	return nil
}

// complete returns an error for tensors with other data than their shapes say.
func (s *State) complete() error {
	for i := range s.Tensors {
		t := &s.Tensors[i]
		if int(t.Type) >= len(dtypes) {
			continue // check says so
		}
		if n, ok := bytesOf(t.Type, t.Shape); !ok || n != uint64(len(t.Data)) {
			return fmt.Errorf("tensor %s: %d bytes do not make %v of %s", t.Name, len(t.Data), t.Shape, t.Type)
		}
	}
	return nil
}
