package main

import (
	"errors"
	"fmt"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/ascend/aclnn"
	"github.com/gradfusion/gradfusion/trainer"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// leased is a device whose end gives back what it was made on.
type leased struct {
	device.Device
	leave func() error
}

func (l leased) Close() error { return errors.Join(l.Device.Close(), l.leave()) }

// device makes what a rank computes on, of which local share the host.
func (a *accelerator) device(c *config.Config, s seat, local int) (device.Device, error) {
	if !computesOnAscend(c) {
		d, err := trainer.NewDevice(c, local)
		if err != nil {
			return nil, c.Blame(err)
		}
		return d, nil
	}
	index, err := a.index(c, s, s.transport.Size())
	if err != nil {
		return nil, err
	}
	rest := *c
	rest.Compute.Kernels = "auto"
	host, err := trainer.NewDevice(&rest, local)
	if err != nil {
		return nil, c.Blame(err)
	}
	taken, err := a.take(index)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("compute.kernels: ascend: rank %d: %w", s.transport.Rank(), err), host.Close())
	}
	d, err := aclnn.New(aclnn.Config{Device: taken, Host: host, Timeout: c.Collective.Timeout})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("compute.kernels: ascend: %w", err), host.Close(), a.give(index))
	}
	return leased{d, func() error { return a.give(index) }}, nil
}

// deviceFailure makes an error of a kernel's panic that says that its device has
// failed, which is no fault of the program.
func deviceFailure(err *error) {
	switch r := recover().(type) {
	case nil:
	case *device.FailureError:
		*err = r
	default:
		panic(r)
	}
}
