package nntest

import (
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// Pack returns values, in row-major order without padding, in the layout of s.
func Pack(s nn.Shape, values []float32) device.Buf {
	out := make([]float32, s.Len())
	for i, v := range values {
		out[Offset(s, i)] = v
	}
	return device.FromF32(out)
}

// Unpack is the inverse of Pack.
func Unpack(s nn.Shape, b device.Buf) []float32 {
	out := make([]float32, s.Rows()*s.Features())
	for i := range out {
		out[i] = b.F32()[Offset(s, i)]
	}
	return out
}

// Offset returns where the i-th element in row-major order lies in memory.
func Offset(s nn.Shape, i int) int {
	if s.Layout != device.Blocked16 {
		return i
	}
	c, pixels := s.Dims[1], s.Dims[2]*s.Dims[3]
	n, channel, pixel := i/(c*pixels), i/pixels%c, i%pixels
	return ((n*device.Blocks(c)+channel/device.Block)*pixels+pixel)*device.Block + channel%device.Block
}
