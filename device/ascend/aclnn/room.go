//go:build ascend && linux && (amd64 || arm64)

package aclnn

import "github.com/gradfusion/gradfusion/device/ascend"

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

// least is the smallest memory that is taken.
const least = 4096

// makeRoom has room for size bytes, whose content is lost. The stream has no work.
func (d *Device) makeRoom(r *room, size int) (err error) {
	if len(r.host.Bytes) < size {
		if err = d.accelerator.FreeHost(r.host); err != nil {
			return err
		}
		if r.host, err = d.accelerator.MallocHost(max(size, least)); err != nil {
			return err
		}
	}
	return d.grow(&r.memory, size)
}

func (d *Device) grow(m *ascend.Memory, size int) error {
	if m.Size >= size {
		return nil
	}
	err := d.accelerator.Free(*m)
	if *m = (ascend.Memory{}); err == nil {
		*m, err = d.accelerator.Malloc(max(size, least))
	}
	return err
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
