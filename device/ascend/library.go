//go:build ascend && linux && (amd64 || arm64)

package ascend

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Library is the loaded and initialised runtime. It is safe for concurrent use.
type Library struct {
	config  Config
	handle  uintptr
	file    string
	symbols symbols

	abandoned atomic.Bool // a device is
}

// Load opens the runtime and initialises it. The error says what was tried and
// what the system's loader answered.
func Load(c Config) (*Library, error) {
	l := &Library{config: c}
	var err error
	if l.handle, l.file, err = l.open("libascendcl.so", "libacl_rt.so"); err != nil {
		return nil, fmt.Errorf("the Ascend runtime cannot be loaded (has CANN's set_env.sh been sourced?): %w", err)
	}
	if err := l.symbols.find(l.handle); err != nil {
		return nil, fmt.Errorf("%s: %w", l.file, err)
	}
	if err := l.Check("aclInit", Call(l.symbols.aclInit, 0)); err != nil && !isCode(err, RepeatInitialize) {
		return nil, err
	}
	return l, nil
}

// Probe finds out whether the runtime is there, without initialising it.
func Probe(c Config) error {
	l := &Library{config: c}
	handle, _, err := l.open("libascendcl.so", "libacl_rt.so")
	if err != nil {
		return fmt.Errorf("the Ascend runtime cannot be loaded (has CANN's set_env.sh been sourced?): %w", err)
	}
	return purego.Dlclose(handle)
}

func isCode(err error, code int32) bool {
	var call *CallError
	return errors.As(err, &call) && call.Code == code
}

// open opens the first of several libraries that is there, by all its candidates.
func (l *Library) open(names ...string) (handle uintptr, file string, err error) {
	var reasons []string
	for _, name := range names {
		for _, file := range l.config.Candidates(name) {
			handle, err := purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_GLOBAL)
			if err == nil {
				return handle, file, nil
			}
			reasons = append(reasons, fmt.Sprintf("%s (%v)", file, err))
		}
	}
	return 0, "", fmt.Errorf("tried %s", strings.Join(reasons, "; "))
}

// Handle is another library of CANN that was opened.
type Handle struct {
	handles []uintptr
	file    string
}

// LoadOther opens a library beside the runtime, which has to be loaded first. Its
// symbols may be in one of others, which need not exist.
func (l *Library) LoadOther(name string, others ...string) (*Handle, error) {
	handle, file, err := l.open(name)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be loaded: %w", name, err)
	}
	h := &Handle{handles: []uintptr{handle}, file: file}
	for _, other := range others {
		if handle, _, err := l.open(other); err == nil {
			h.handles = append(h.handles, handle)
		}
	}
	return h, nil
}

// File is the name under which the library was found.
func (h *Handle) File() string { return h.file }

// Symbol returns a function's address, or 0 where the library has none.
func (h *Handle) Symbol(name string) uintptr {
	for _, handle := range h.handles {
		if at, err := purego.Dlsym(handle, name); err == nil && at != 0 {
			return at
		}
	}
	return 0
}

// Need is Symbol with an error for a missing function.
func (h *Handle) Need(name string) (uintptr, error) {
	at := h.Symbol(name)
	if at == 0 {
		return 0, fmt.Errorf("%s has no %s; this needs a newer CANN", h.file, name)
	}
	return at, nil
}

// Call calls a C function of integers and pointers that returns a 32-bit integer.
// Pointers to Go memory are valid during the call only.
//
//go:uintptrescapes
func Call(at uintptr, args ...uintptr) int32 {
	r, _, _ := purego.SyscallN(at, args...)
	return int32(uint32(r))
}

// CallPointer calls a C function that returns a pointer to memory of its own.
//
//go:uintptrescapes
func CallPointer(at uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(at, args...)
	return r
}

// CallText calls a C function that returns a string, which is copied.
//
//go:uintptrescapes
func CallText(at uintptr, args ...uintptr) string {
	r, _, _ := purego.SyscallN(at, args...)
	return text(r)
}

// text copies a C string; at 0 it is empty.
func text(at uintptr) string {
	if at == 0 {
		return ""
	}
	start := (*byte)(pointer(at))
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(start), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(start, n))
}

// pointer is the address of memory that is not Go's.
func pointer(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

// Check turns a code into an error, with the text that this thread has for it:
// it is called at once, on the same thread.
func (l *Library) Check(call string, code int32) error {
	if code == 0 {
		return nil
	}
	return &CallError{Call: call, Code: code, Text: l.RecentText()}
}

// RecentText takes the message of this thread's last failure.
func (l *Library) RecentText() string {
	return strings.TrimSpace(CallText(l.symbols.aclGetRecentErrMsg))
}

// File is the name under which the runtime was found.
func (l *Library) File() string { return l.file }

// Version returns the version of CANN as far as the libraries tell it.
func (l *Library) Version() string {
	h := &Handle{handles: []uintptr{l.handle}}
	if at := h.Symbol("aclsysGetVersionStr"); at != 0 {
		name, out := []byte("runtime\x00"), make([]byte, 256)
		if Call(at, uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(&out[0]))) == 0 {
			return cut(out)
		}
	}
	if at := h.Symbol("aclsysGetCANNVersion"); at != 0 {
		var v cannVersion
		if Call(at, 0, uintptr(unsafe.Pointer(&v))) == 0 {
			return cut(v.version[:])
		}
	}
	if at := h.Symbol("aclrtGetVersion"); at != 0 {
		var v [3]int32
		if Call(at, uintptr(unsafe.Pointer(&v[0])), uintptr(unsafe.Pointer(&v[1])), uintptr(unsafe.Pointer(&v[2]))) == 0 {
			return fmt.Sprintf("ACL %d.%d.%d", v[0], v[1], v[2])
		}
	}
	return ""
}

func cut(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return s
}

// Chip returns the name of the first device's chip, such as "Ascend910B3".
func (l *Library) Chip() string { return CallText(l.symbols.aclrtGetSocName) }

// Devices returns how many devices this process sees.
func (l *Library) Devices() (int, error) {
	var n uint32
	if err := l.Check("aclrtGetDeviceCount", Call(l.symbols.aclrtGetDeviceCount, uintptr(unsafe.Pointer(&n)))); err != nil {
		return 0, err
	}
	return int(n), nil
}

// Close ends the use of the runtime by this process. All devices are closed
// before.
func (l *Library) Close() error {
	if l.abandoned.Load() {
		return nil
	}
	return l.Check("aclFinalize", Call(l.symbols.aclFinalize))
}
