//go:build !linux

package tcp

import "runtime"

// yieldThread lets something else run.
func yieldThread() { runtime.Gosched() }
