package nn

import (
	"fmt"
	"strings"

	"github.com/gradfusion/gradfusion/device"
)

// Shape is the extent of a Var and how it lies in memory. Images are
// N x C x H x W in either layout; everything else is Plain, row-major.
type Shape struct {
	Dims   [4]int // unused ones are 0
	Rank   int
	Layout device.Layout
}

// Plain returns a row-major shape of up to four dimensions.
func Plain(dims ...int) Shape {
	if len(dims) > 4 {
		fail("", "shape", "%d dimensions, at most 4", len(dims))
	}
	s := Shape{Rank: len(dims)}
	copy(s.Dims[:], dims)
	return s
}

// Image returns the shape of n images in the Blocked16 layout.
func Image(n, c, h, w int) Shape {
	return Shape{Dims: [4]int{n, c, h, w}, Rank: 4, Layout: device.Blocked16}
}

// Len returns the elements in memory, channel padding included.
func (s Shape) Len() int {
	n := 1
	for i := range s.Rank {
		d := s.Dims[i]
		if i == 1 && s.Layout == device.Blocked16 {
			d = device.Blocks(d) * device.Block
		}
		n *= d
	}
	return n
}

// Rows returns the first dimension: samples, or rows of a matrix.
func (s Shape) Rows() int { return s.Dims[0] }

// Features returns the elements of one row, padding left out.
func (s Shape) Features() int {
	n := 1
	for i := 1; i < s.Rank; i++ {
		n *= s.Dims[i]
	}
	return n
}

// isRows reports whether s is a matrix or sequences of tokens: rows along the
// last dimension.
func (s Shape) isRows() bool {
	return s.Layout == device.Plain && (s.Rank == 2 || s.Rank == 3)
}

// matrix reads s as rows along the last dimension.
func (s Shape) matrix() (rows, columns int) {
	rows = 1
	for i := range s.Rank - 1 {
		rows *= s.Dims[i]
	}
	return rows, s.Dims[s.Rank-1]
}

// withColumns replaces the last dimension.
func (s Shape) withColumns(n int) Shape {
	s.Dims[s.Rank-1] = n
	return s
}

// padded reports whether the last block of channels has padding.
func (s Shape) padded() bool { return s.Layout == device.Blocked16 && s.Dims[1]%device.Block != 0 }

// images reads a matrix as images of one pixel.
func (s Shape) images() (n, h, w int) {
	if s.Rank == 2 {
		return s.Dims[0], 1, 1
	}
	return s.Dims[0], s.Dims[2], s.Dims[3]
}

func (s Shape) String() string {
	var b strings.Builder
	for i := range s.Rank {
		if i > 0 {
			b.WriteString(" x ")
		}
		fmt.Fprint(&b, s.Dims[i])
	}
	if s.Layout != device.Plain {
		fmt.Fprintf(&b, " (%s)", s.Layout)
	}
	return b.String()
}
