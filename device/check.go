package device

import "fmt"

// ShapeError is the value that a kernel panics with when a buffer or descriptor
// does not fit: a programmer's error, found before anything was written.
type ShapeError struct {
	Kernel   string // such as "ConvForward"
	Argument string // such as "x"
	Problem  string
}

func (e *ShapeError) Error() string {
	return fmt.Sprintf("device: %s: %s %s", e.Kernel, e.Argument, e.Problem)
}

// LabelError is the value that a loss kernel panics with when a label names no
// class. The labels came from data, so whoever catches it should say which.
type LabelError struct {
	Row     int
	Label   int32
	Classes int
}

func (e *LabelError) Error() string {
	return fmt.Sprintf("device: row %d has label %d, outside of 0..%d", e.Row, e.Label, e.Classes-1)
}

// FailureError is the value that a kernel panics with when its device fails, which
// is nobody's mistake: kernels return nothing. What the kernel was to write is
// undefined, and so is the device.
type FailureError struct {
	Kernel string
	Err    error
}

func (e *FailureError) Error() string { return fmt.Sprintf("device: %s: %v", e.Kernel, e.Err) }

func (e *FailureError) Unwrap() error { return e.Err }

// Require panics with a *ShapeError unless b holds at least n elements of t.
// Implementations of Kernels call it on every argument before they start.
func Require(kernel, argument string, b Buf, t Type, n int) {
	if b.Len < n || n < 0 || (b.Type != t && n > 0) {
		panic(&ShapeError{kernel, argument, fmt.Sprintf("is %d x %s, needs %d x %s", b.Len, b.Type, n, t)})
	}
}

// RequireFloat is Require for arguments of F32, F16 or BF16.
func RequireFloat(kernel, argument string, b Buf, n int) {
	t := F32
	if b.Type == F16 || b.Type == BF16 {
		t = b.Type
	}
	Require(kernel, argument, b, t, n)
}

// RequireSame panics with a *ShapeError unless b has the type and length of a.
func RequireSame(kernel, argument string, b, a Buf) {
	if b.Len != a.Len || b.Type != a.Type {
		panic(&ShapeError{kernel, argument, fmt.Sprintf("is %d x %s, needs %d x %s", b.Len, b.Type, a.Len, a.Type)})
	}
}

// RequireThat panics with a *ShapeError that holds problem unless ok.
func RequireThat(ok bool, kernel, argument, problem string) {
	if !ok {
		panic(&ShapeError{kernel, argument, problem})
	}
}
