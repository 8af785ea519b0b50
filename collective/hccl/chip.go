package hccl

import (
	"strings"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/ascend"
)

// chip is what a kind of device can do.
type chip struct {
	first bool // the first generation, 910 or 910A
	third bool // 910C, also called 910_93, whose hosts form super pods
}

// chipOf knows a chip by the name that the runtime tells, such as "Ascend910B3".
func chipOf(name string) chip {
	return chip{
		first: ascend.FirstGeneration(name),
		third: strings.HasPrefix(name, "Ascend910C") || strings.HasPrefix(name, "Ascend910_93"),
	}
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

// reducesParts is reduces for parts of several sizes (HcclReduceScatterV).
func (c chip) reducesParts(t device.Type, op collective.Op) bool {
	return !c.first && op != collective.Prod && (t != device.I64 || c.third) && c.reduces(t, op)
}

// hasParts reports whether parts of several sizes can go between ranks on such
// hosts: on a 910B where all have as many, on a 910C where there is one.
func (c chip) hasParts(hosts [][]int) bool {
	if c.first || c.third && len(hosts) > 1 {
		return false
	}
	for _, h := range hosts {
		if len(h) != len(hosts[0]) {
			return false
		}
	}
	return true
}

// moved is the type under which elements are moved: itself, or bits of its size
// where the chip does not know it.
func (c chip) moved(t device.Type) uintptr {
	if t == device.BF16 && c.first {
		return typeInt16
	}
	return hcclType(t)
}
