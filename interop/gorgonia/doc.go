// Package gorgonia joins this framework to gorgonia.org/gorgonia. It is the
// only package that imports it.
//
// A program that trains with Gorgonia's graphs uses an optimizer of ours as its
// solver: see Solver. A program that trains with GradFusion uses a solver of
// Gorgonia's as its optimizer: see Optimizer. ValueGrads hands parameters to
// any other code that takes Gorgonia's ValueGrad.
//
// It leaves out Gorgonia's graphs as models: their virtual machine has no hook
// in the middle of a backward pass. Running a graph and handing its gradients to
// a collective call afterwards needs no help from here.
package gorgonia

// Gorgonia's dependency refuses to start on a Go version that it does not know;
// the import raises the version that it knows.
import _ "go4.org/unsafe/assume-no-moving-gc"
