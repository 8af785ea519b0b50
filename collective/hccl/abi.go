package hccl

import (
	"encoding/binary"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

// What the C++ headers of HCCL define; the layout test compares it with a C
// program.

// rootInfoSize is sizeof(HcclRootInfo). Chips write some 200 of its bytes.
const rootInfoSize = 4108

// Values of HcclDataType, which are not those of the runtime.
const (
	typeInt8  = 0
	typeInt16 = 1
	typeInt32 = 2
	typeFP16  = 3
	typeFP32  = 4
	typeInt64 = 5
	typeUint8 = 7
	typeFP64  = 10
	typeBFP16 = 11
)

// Values of HcclReduceOp.
const (
	reduceSum  = 0
	reduceProd = 1
	reduceMax  = 2
	reduceMin  = 3
)

// Values of HcclSendRecvType.
const (
	itemSend = 0
	itemRecv = 1
)

// item is HcclSendRecvItem.
type item struct {
	direction int32
	_         int32
	buffer    uintptr
	count     uint64
	typ       int32
	peer      uint32
}

// The layout of HcclCommConfig, version 5: it only grows, and the library reads
// as much of it as its size says.
const (
	configSize     = 300
	configOldSize  = 32 // what libraries that tell no capability above 2 take
	configVersion  = 5
	configOld      = 1
	configMagic    = 0xF0F0F0F0
	configNotSet   = 0xFFFFFFFF
	atMagic        = 8
	atVersion      = 12
	atBufferSize   = 24
	atDetermined   = 28
	atName         = 32
	nameSize       = 128
	atTrafficClass = 292
	atServiceLevel = 296
	capabilityName = 2 // COMM_NAME: supported when the capability is above
)

// commConfig writes a HcclCommConfig, of which the header has an inline function
// only. capability is HcclGetCommConfigCapability's, or 0.
func commConfig(capability uint32, bufferMB int, deterministic bool, name string) []byte {
	b := make([]byte, configSize)
	put := func(at int, v uint32) { binary.LittleEndian.PutUint32(b[at:], v) }
	size, version := configSize, uint32(configVersion)
	if capability <= capabilityName {
		size, version = configOldSize, configOld
	}
	binary.LittleEndian.PutUint64(b, uint64(size))
	put(atMagic, configMagic)
	put(atVersion, version)
	put(atBufferSize, configNotSet)
	if bufferMB > 0 {
		put(atBufferSize, uint32(bufferMB))
	}
	put(atDetermined, configNotSet)
	if deterministic {
		put(atDetermined, 1)
	}
	copy(b[atName:atName+nameSize-1], name)
	put(atTrafficClass, configNotSet)
	put(atServiceLevel, configNotSet)
	return b
}

// hcclType is a type's number.
func hcclType(t device.Type) uintptr {
	switch t {
	case device.F32:
		return typeFP32
	case device.F16:
		return typeFP16
	case device.BF16:
		return typeBFP16
	case device.F64:
		return typeFP64
	case device.I32:
		return typeInt32
	case device.I64:
		return typeInt64
	case device.I8:
		return typeInt8
	}
	return typeUint8
}

// hcclOp is a reduction's number; the mean is a sum.
func hcclOp(o collective.Op) uintptr {
	switch o {
	case collective.Prod:
		return reduceProd
	case collective.Max:
		return reduceMax
	case collective.Min:
		return reduceMin
	}
	return reduceSum
}
