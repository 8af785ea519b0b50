// Package nntest checks operations, layers and networks of package nn on any
// device: gradients against central differences, the two halves of the backward
// pass against the whole, reuse of a tape, frozen and repeatedly used
// parameters. To test an operation, describe it as a Case and call Check. To test
// a layer that is cut, run it as Together's partners and compare the Wholes of their
// parts with those of one.
package nntest
