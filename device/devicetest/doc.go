// Package devicetest is the conformance test of devices: it runs every kernel
// on a table of shapes, odd ones above all, and compares with device/naive.
//
// A new device calls Run from its tests, and Same with two of its
// configurations that have to agree to the bit, such as one and three threads.
// Devices whose memory the host cannot read are left out for now: the tests
// write inputs and read outputs through device.Buf.
//
// Three kinds of comparison: products, convolutions and pools of small integers
// are exact, so they must be equal; element-wise kernels must be equal because
// each step is one rounding; sums of random numbers must agree within a bound
// that stands beside the case. Every buffer lies between guard bytes, outputs
// start as NaN, and the channels that pad Blocked16 images must stay zero.
package devicetest
