package data

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Shape returns what a model has to know of the samples.
func (s *Source) Shape() Shape {
	if s.Text != nil {
		return Shape{Vocabulary: s.Text.Vocabulary, Context: s.Text.Context}
	}
	return Shape{Channels: s.Train.Channels, Height: s.Train.Height, Width: s.Train.Width, Classes: s.Train.Classes}
}

// Filling makes the samples of one part of a set.
type Filling interface {
	Filler
	Len() int // samples
}

// Training returns the samples to train on; seed is of the augmentation, which
// texts have none of.
func (s *Source) Training(augment Augment, seed uint64) (Filling, error) {
	if s.Text != nil {
		return NewWindows(s.Text.Train, s.Text.Context, true)
	}
	return NewBatcher(s.Train, s.Normalization, augment, seed)
}

// Testing returns the samples to evaluate on.
func (s *Source) Testing() (Filling, error) {
	if s.Text != nil {
		return NewWindows(s.Text.Test, s.Text.Context, false)
	}
	return NewBatcher(s.Test, s.Normalization, Augment{}, 0)
}

// Describe says in a line each what the parts hold, with a checksum of all of
// it, to tell sets apart.
func (s *Source) Describe() (train, test string) {
	if s.Text != nil {
		return s.Text.describe(s.Text.Train), s.Text.describe(s.Text.Test)
	}
	return s.Train.describe(), s.Test.describe()
}

func (s *Images) describe() string {
	sum := crc32.NewIEEE()
	sum.Write(s.Pixels)
	var four [4]byte
	for _, label := range s.Labels {
		binary.LittleEndian.PutUint32(four[:], uint32(label))
		sum.Write(four[:])
	}
	return fmt.Sprintf("%d images of %d x %d x %d, %08x", s.Len(), s.Channels, s.Height, s.Width, sum.Sum32())
}

func (t *Text) describe(part Tokens) string {
	sum := crc32.NewIEEE()
	sum.Write([]byte(string(t.Characters))) // other letters may have the same numbers
	sum.Write(part.bytes)
	var pair [2]byte
	for _, token := range part.wide {
		binary.LittleEndian.PutUint16(pair[:], token)
		sum.Write(pair[:])
	}
	return fmt.Sprintf("%d tokens of %d, %08x", part.Len(), t.Vocabulary, sum.Sum32())
}
