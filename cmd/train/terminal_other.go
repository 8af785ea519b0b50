//go:build !linux

package main

import "os"

// isTerminal reports whether f is one, as far as its kind of file tells.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && f.Name() != os.DevNull
}
