package config

import "errors"

// Switch is on, off, or auto, the zero value, which leaves it to the trainer.
type Switch int8

// The values of a Switch that were chosen.
const (
	Off Switch = -1
	On  Switch = 1
)

// UnmarshalText reads auto, true or false.
func (s *Switch) UnmarshalText(text []byte) error {
	switch string(text) {
	case "auto":
		*s = 0
	case "true":
		*s = On
	case "false":
		*s = Off
	default:
		return errors.New("auto, true or false")
	}
	return nil
}

// MarshalText is the inverse of UnmarshalText.
func (s Switch) MarshalText() ([]byte, error) {
	switch s {
	case On:
		return []byte("true"), nil
	case Off:
		return []byte("false"), nil
	}
	return []byte("auto"), nil
}
