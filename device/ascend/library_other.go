//go:build !ascend || !linux || (!amd64 && !arm64)

package ascend

import "fmt"

// Library stands for the loaded runtime, which this binary cannot have.
type Library struct{}

// Device stands for an opened device.
type Device struct{}

// Load refuses: this binary cannot load libraries.
func Load(Config) (*Library, error) {
	if !supported {
		return nil, fmt.Errorf("ascend devices need Linux on amd64 or arm64")
	}
	return nil, ErrNotBuilt
}

// Probe refuses as Load does.
func Probe(c Config) error {
	_, err := Load(c)
	return err
}

// Open refuses.
func (*Library) Open(int) (*Device, error) { return nil, ErrNotBuilt }

// Library is an empty one.
func (*Device) Library() *Library { return &Library{} }

// Version is empty.
func (*Library) Version() string { return "" }

// Close does nothing.
func (*Library) Close() error { return nil }

// Close does nothing.
func (*Device) Close() error { return nil }

// Chip is empty.
func (*Library) Chip() string { return "" }

// File is empty.
func (*Library) File() string { return "" }
