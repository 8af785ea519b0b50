package data

import "fmt"

// Samples is memory for samples, one after the other: images have X, texts have
// Tokens, and both have Y.
type Samples struct {
	X      []float32 // normalised pixels
	Tokens []int32
	Y      []int32 // what is to be predicted: an image's class, a window's next tokens
}

// Sizes are the elements that one sample has in each part of Samples.
type Sizes struct{ X, Tokens, Y int }

func (s Sizes) of(n int) Samples {
	return Samples{X: room[float32](n * s.X), Tokens: make([]int32, n*s.Tokens), Y: make([]int32, n*s.Y)}
}

// first returns the memory of the first n samples.
func (s Samples) first(n int, size Sizes) Samples {
	return Samples{X: s.X[:n*size.X], Tokens: s.Tokens[:n*size.Tokens], Y: s.Y[:n*size.Y]}
}

// holds returns an error unless there is room for n samples.
func (s Samples) holds(n int, size Sizes) error {
	if len(s.X) < n*size.X || len(s.Tokens) < n*size.Tokens || len(s.Y) < n*size.Y {
		return fmt.Errorf("data: %d samples of %d values, %d tokens and %d targets do not fit into %d values, %d tokens and %d targets",
			n, size.X, size.Tokens, size.Y, len(s.X), len(s.Tokens), len(s.Y))
	}
	return nil
}

// Filler writes samples into a micro-batch. Fill is called concurrently for
// different micro-batches; to has exactly len(indices) times the Sizes. A
// Batcher and Windows are Fillers.
type Filler interface {
	Sizes() Sizes
	Fill(to Samples, indices []int, epoch int) error
}

// Shape says what a set's samples are, as a model must know it: images have
// Channels, Height, Width and Classes, texts Vocabulary and Context.
type Shape struct {
	Channels, Height, Width, Classes int

	Vocabulary int // tokens are 0 to Vocabulary - 1
	Context    int // tokens of a window
}
