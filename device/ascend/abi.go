package ascend

import "runtime"

// What the C headers of CANN define; the layout test compares it with a C program.

// CopyKind is the direction of a copy.
type CopyKind int32

// The directions. From host to host there is no asynchronous copy.
const (
	HostToDevice   CopyKind = 1
	DeviceToHost   CopyKind = 2
	DeviceToDevice CopyKind = 3
)

const (
	mallocHugeFirst = 0

	eventSync     = 0x1
	eventTimeLine = 0x8

	eventComplete  = 1 // of aclrtQueryEventStatus
	streamComplete = 0 // of aclrtStreamQuery

	stopOnFailure = 1
	memoryHBM     = 1
)

// cannVersion is aclCANNPackageVersion.
type cannVersion struct {
	version  [128]byte
	major    [64]byte
	minor    [64]byte
	release  [64]byte
	patch    [64]byte
	reserved [128]byte
}

// supported is the systems that CANN exists for.
const supported = runtime.GOOS == "linux" && (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64")
