// Package commtest is the test that every transport passes: the transport's own
// contract first, then collective.Group over it, with a naive oracle, awkward
// lengths, all operations, types and reductions, and failures.
//
// A transport's test is one line:
//
//	func TestConformance(t *testing.T) { commtest.Run(t, connect) }
//
// where connect returns the n transports of a fresh world. The suite closes
// them. Transports runs the first part alone.
package commtest
