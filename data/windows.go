package data

import "fmt"

// Windows writes pieces of a text: a sample is Context tokens and, for each of
// them, the token that follows. It is not changed once it is made and may be
// used concurrently.
type Windows struct {
	tokens  Tokens
	context int
	samples int
}

var _ Filler = (*Windows)(nil)

// NewWindows cuts tokens into windows that follow each other without a gap:
// window i has the tokens from i x context on, and its last target is the first
// token of window i + 1. For training (whole) a rest shorter than a window is
// left out, so that all have the same number of targets. Otherwise it is a
// window of its own with Ignore for the targets that are not there, so that
// each token but the first is the target of exactly one place.
func NewWindows(tokens Tokens, context int, whole bool) (*Windows, error) {
	if context < 1 {
		return nil, fmt.Errorf("data: windows of %d tokens: expected at least 1", context)
	}
	targets := max(tokens.Len()-1, 0)
	samples := targets / context
	if !whole {
		samples = Micros(targets, context)
	}
	if samples == 0 {
		return nil, fmt.Errorf("data: %d tokens make no window of %d and the token after it", tokens.Len(), context)
	}
	return &Windows{tokens: tokens, context: context, samples: samples}, nil
}

// Len returns the number of windows.
func (w *Windows) Len() int { return w.samples }

// Sizes returns the tokens and the targets of a window.
func (w *Windows) Sizes() Sizes { return Sizes{Tokens: w.context, Y: w.context} }

// Fill writes the windows indices, in that order, into to, which must have room
// for them. The epoch changes nothing. It does not allocate.
func (w *Windows) Fill(to Samples, indices []int, _ int) error {
	if err := to.holds(len(indices), w.Sizes()); err != nil {
		return err
	}
	for i, index := range indices {
		if index < 0 || index >= w.samples {
			return fmt.Errorf("data: window %d of a text of %d", index, w.samples)
		}
		tokens, targets := to.Tokens[i*w.context:(i+1)*w.context], to.Y[i*w.context:(i+1)*w.context]
		clear(tokens[w.tokens.copyTo(tokens, index*w.context):])
		for k := w.tokens.copyTo(targets, index*w.context+1); k < w.context; k++ {
			targets[k] = Ignore
		}
	}
	return nil
}
