package nn

import (
	"fmt"

	"github.com/gradfusion/gradfusion/device"
)

// Error is a programmer's mistake: shapes, types or modes that do not fit. It
// is what nn panics with, and what Catch returns.
type Error struct {
	Layer string // the parameter or layer it concerns, when known
	Op    string
	Text  string
}

func (e *Error) Error() string {
	if e.Layer == "" {
		return fmt.Sprintf("%s: %s", e.Op, e.Text)
	}
	return fmt.Sprintf("%s (%s): %s", e.Layer, e.Op, e.Text)
}

func fail(layer, op, format string, args ...any) {
	panic(&Error{Layer: layer, Op: op, Text: fmt.Sprintf(format, args...)})
}

// Catch is deferred at a stage boundary: it turns a panic with an *Error, or
// with an error that a parameter's Use, Partners, an Arena or a kernel met, into
// *err. Other panics go on.
func Catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case *Error:
		*err = r
	case *UseError:
		*err = r
	case *PartnerError:
		*err = r
	case *device.LabelError:
		*err = r
	case *device.IndexError:
		*err = r
	case *device.ShapeError:
		*err = r
	case *device.MemoryError:
		*err = r
	case *device.FailureError:
		*err = r
	default:
		panic(r)
	}
}

// UseError is a failure of what had to happen before a parameter's first use,
// such as the wait for an all-gather.
type UseError struct {
	Param string
	Err   error
}

func (e *UseError) Error() string { return fmt.Sprintf("parameter %s: %v", e.Param, e.Err) }

func (e *UseError) Unwrap() error { return e.Err }
