package hccl

import (
	"strings"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

// chip is what a kind of device can do.
type chip struct{ first bool } // the first generation, 910 or 910A

// chipOf knows a chip by the name that the runtime tells, such as "Ascend910B3".
func chipOf(name string) chip {
	after, ok := strings.CutPrefix(name, "Ascend910")
	return chip{first: ok && !strings.HasPrefix(after, "B") && !strings.HasPrefix(after, "C") && !strings.HasPrefix(after, "_93")}
}

// reduces reports whether the operations that reduce take a type and an op.
func (c chip) reduces(t device.Type, op collective.Op) bool {
	switch t {
	case device.F32, device.I32, device.I64, device.I8, device.F16:
		return true
	case device.BF16:
		return !c.first && op != collective.Prod
	}
	return false
}

// moved is the type under which elements are moved: itself, or bits of its size
// where the chip does not know it.
func (c chip) moved(t device.Type) uintptr {
	if t == device.BF16 && c.first {
		return typeInt16
	}
	return hcclType(t)
}
