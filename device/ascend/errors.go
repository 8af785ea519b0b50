package ascend

import (
	"errors"
	"fmt"
)

// ErrNotBuilt says that this binary was built without the binding.
var ErrNotBuilt = errors.New("this binary was built without Ascend; build it with: go build -tags ascend ./cmd/train")

// ErrClosed is returned by a Thread that has ended.
var ErrClosed = errors.New("the device's thread has ended")

// CallError is a call of the runtime that failed.
type CallError struct {
	Call string // such as "aclrtMalloc"
	Code int32
	Text string // what the runtime says about it (aclGetRecentErrMsg), or empty
}

func (e *CallError) Error() string {
	s := fmt.Sprintf("%s returned %d", e.Call, e.Code)
	if name := CodeName(e.Code); name != "" {
		s += " (" + name + ")"
	}
	if e.Text != "" {
		s += ": " + e.Text
	}
	return s
}

// The runtime's codes that callers tell apart.
const (
	RepeatInitialize = 100002
	ContextNull      = 107002
	StreamTimeout    = 507046
	EventTimeout     = 507047
)

// CodeName says in words what a code of the runtime means; empty when unknown.
func CodeName(code int32) string {
	switch code {
	case 100000, 107000:
		return "invalid parameter"
	case 100001:
		return "not initialised"
	case RepeatInitialize:
		return "initialised twice"
	case 100037:
		return "finalised twice"
	case 107001:
		return "no such device"
	case ContextNull:
		return "the thread has no context"
	case 107003:
		return "the stream is of another context"
	case 107017:
		return "invalid handle"
	case 107019:
		return "wait timed out"
	case 107020:
		return "task timed out"
	case 107022:
		return "the device's tasks were aborted"
	case 161001:
		return "an operator got a null pointer"
	case 161002:
		return "an operator got an invalid parameter"
	case 200000, 207001:
		return "memory allocation failed"
	case 207000:
		return "not supported"
	case 207004:
		return "no device"
	case 207005:
		return "out of resources"
	case 207008:
		return "no more streams"
	case 207018:
		return "the device is out of memory"
	case 507000:
		return "internal error of the runtime"
	case 507010:
		return "the device's heartbeat is lost"
	case 507014:
		return "a task of an AI core timed out"
	case 507015:
		return "a task of an AI core failed"
	case 507018:
		return "a task of an AI CPU failed"
	case 507033:
		return "the device cannot be set up"
	case StreamTimeout:
		return "waiting for the stream timed out"
	case EventTimeout:
		return "waiting for the event timed out"
	case 507048:
		return "a task timed out, as a collective that waits for a peer does"
	case 507049:
		return "a task failed, as a collective does"
	case 507053:
		return "an uncorrectable error of the device's memory"
	case 507054:
		return "several wrong bits in the device's memory"
	case 507899:
		return "internal error of the driver"
	case 507901:
		return "the driver's connection was closed"
	}
	return ""
}
