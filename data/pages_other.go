//go:build !linux

package data

// advise has nobody to ask.
func advise([]byte) {}
