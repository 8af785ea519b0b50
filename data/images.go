package data

import (
	"fmt"
	"math"
)

// Images is a set of labelled images of one size, held in memory. Nothing in
// this package changes it once it is made, so it may be shared.
type Images struct {
	Channels, Height, Width int
	Classes                 int
	Pixels                  []byte  // N x Channels x Height x Width
	Labels                  []int32 // N, each in [0, Classes)
}

// Len returns the number of images.
func (s *Images) Len() int { return len(s.Labels) }

// SampleSize returns the values of one image: Channels x Height x Width.
func (s *Images) SampleSize() int { return s.Channels * s.Height * s.Width }

// Sample returns the pixels of image i, sharing memory.
func (s *Images) Sample(i int) []byte {
	n := s.SampleSize()
	return s.Pixels[i*n : (i+1)*n : (i+1)*n]
}

// Check returns an error when sizes or labels do not fit together. Open has
// done it; it is for images that a program makes itself.
func (s *Images) Check() error {
	if s.Channels < 1 || s.Height < 1 || s.Width < 1 || s.Classes < 1 {
		return fmt.Errorf("data: images of %d x %d x %d in %d classes: every size must be at least 1",
			s.Channels, s.Height, s.Width, s.Classes)
	}
	if s.Len() == 0 || len(s.Pixels) != s.Len()*s.SampleSize() {
		return fmt.Errorf("data: %d labels and %d pixels do not make images of %d x %d x %d",
			s.Len(), len(s.Pixels), s.Channels, s.Height, s.Width)
	}
	for i, label := range s.Labels {
		if label < 0 || int(label) >= s.Classes {
			return fmt.Errorf("data: image %d has label %d, expected 0 to %d", i, label, s.Classes-1)
		}
	}
	return nil
}

// Normalization maps a pixel p of channel c to (p/255 - Mean[c]) / Std[c].
type Normalization struct{ Mean, Std []float64 }

// Normalization returns the mean and the standard deviation (of the whole
// population) of each channel, in units of 0 to 1. They come from counts of
// pixel values, so no order of summation can change them. A channel that is
// constant has the deviation 1.
func (s *Images) Normalization() Normalization {
	n := Normalization{Mean: make([]float64, s.Channels), Std: make([]float64, s.Channels)}
	plane := s.Height * s.Width
	for c := range s.Channels {
		var counts [256]int64
		for i := range s.Len() {
			for _, p := range s.Pixels[(i*s.Channels+c)*plane:][:plane] {
				counts[p]++
			}
		}
		n.Mean[c], n.Std[c] = moments(&counts)
	}
	return n
}

func moments(counts *[256]int64) (mean, std float64) {
	var total, sum float64
	for v, k := range counts {
		total += float64(k)
		sum += float64(float64(k) * float64(v))
	}
	mean = sum / total
	var squares float64
	for v, k := range counts {
		d := float64(v) - mean
		squares += float64(float64(k) * d * d)
	}
	std = math.Sqrt(squares / total)
	if !(std > 0) {
		std = 255
	}
	return mean / 255, std / 255
}

// table returns the normalised value of each pixel value of channel c.
func (n Normalization) table(c int) (t [256]float32) {
	for v := range t {
		t[v] = float32((float64(v)/255 - n.Mean[c]) / n.Std[c])
	}
	return t
}
