//go:build ascend && linux && (amd64 || arm64)

package aclnn

import (
	"errors"

	"github.com/gradfusion/gradfusion/device/ascend"
)

// room is where an operand or a result of a kernel lies: on the device and, on its
// way, in pinned memory. It grows to the largest one and stays.
type room struct {
	host   ascend.Pinned
	memory ascend.Memory
}

// The rooms of a kernel.
const (
	left = iota
	right
	result
	before // what the result is added to
	sum
	roomCount
)

// makeRoom has room for size bytes, whose content is lost. The stream has no work.
func (d *Device) makeRoom(r *room, size int) error {
	return errors.Join(d.accelerator.GrowHost(&r.host, size), d.accelerator.Grow(&r.memory, size))
}

// upload puts bytes on their way to a room.
func (d *Device) upload(r *room, b []byte) error {
	if err := d.makeRoom(r, len(b)); err != nil {
		return err
	}
	copy(r.host.Bytes, b)
	return d.accelerator.CopyAsync(r.memory.At, r.host.At(), len(b), ascend.HostToDevice, d.stream)
}

// download puts a room's first bytes on their way to its pinned memory.
func (d *Device) download(r *room, size int) error {
	return d.accelerator.CopyAsync(r.host.At(), r.memory.At, size, ascend.DeviceToHost, d.stream)
}
