// Package extblas computes with a matrix product that it finds on the machine:
// OpenBLAS, or the one of oneDNN. It is for comparing claims about device/cpu
// with what others reach, on the same models and data.
//
// A Device is a cpu.Device whose MatMul calls the library, and whose
// convolutions unfold an image into a matrix (im2col) and multiply that with the
// same library: the textbook form, not the library's own convolution. All else
// is the cpu device's.
//
// The library is loaded at run time, without cgo. That makes a binary dynamic,
// so it is behind a build tag; without it New says how to build:
//
//	go build -tags extblas ./cmd/train
//
// What device/cpu promises about products does not hold here: the bits of a
// result may depend on the number of threads and on the library's version, and
// a call allocates a few small objects. The package leaves out the libraries'
// convolutions, convolutions in groups and products of 16-bit types: the cpu device
// computes those.
package extblas
