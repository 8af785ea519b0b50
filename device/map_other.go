//go:build !linux || race

package device

import "errors"

// mapRegion takes memory of the Go heap, with room to align it.
func mapRegion(least int) (m []byte, room int, err error) {
	return make([]byte, least+Align), Align, nil
}

// unmapRegion leaves the memory to the garbage collector.
func unmapRegion([]byte) {}

// advise has nobody to ask.
func advise([]byte) {}

// populate is for mapped memory.
func populate([]byte) error { return errors.ErrUnsupported }
