package data

import (
	"errors"
	"fmt"
	"strings"
)

// ErrClosed is what Next returns on a Loader that was closed.
var ErrClosed = errors.New("data: the loader is closed")

// FileError says what is wrong with a data file and where.
type FileError struct {
	Path     string
	Offset   int64 // byte of the unpacked content, -1 where there is none
	Record   int   // image, label or line, counted from 0, -1 where there is none
	Expected string
	Found    string
	Err      error // the cause, where another package found it
}

func (e *FileError) Error() string {
	var b strings.Builder
	b.WriteString("data: " + e.Path)
	if e.Record >= 0 {
		fmt.Fprintf(&b, ", record %d", e.Record)
	}
	if e.Offset >= 0 {
		fmt.Fprintf(&b, ", byte %d", e.Offset)
	}
	b.WriteString(": expected " + e.Expected)
	if e.Found != "" {
		b.WriteString(", found " + e.Found)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

func (e *FileError) Unwrap() error { return e.Err }
