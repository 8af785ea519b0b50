package aclnn

import (
	"errors"
	"time"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/ascend"
)

// Config says what computes. Device and Host are needed.
type Config struct {
	// Device is opened by the caller and closed after the one that New makes.
	Device *ascend.Device
	// Host owns memory and computes what has no operator here; it is closed with
	// what New makes.
	Host device.Device
	// Timeout bounds one kernel on the device. 0: one minute.
	Timeout time.Duration
}

func (c Config) check() error {
	if c.Device == nil || c.Host == nil {
		return errors.New("aclnn: Config.Device and Config.Host are needed")
	}
	return nil
}
