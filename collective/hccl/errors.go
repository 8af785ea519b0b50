package hccl

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// Error is a failure that HCCL or the device's runtime reported.
type Error struct {
	Op     string // the function, such as "HcclAllReduce"
	Code   int32  // its code, or the runtime's
	Result string // what HCCL calls the code
	Text   string // what the runtime tells beside it
	Comm   string
	Rank   int
	Log    string // the directory of the libraries' logs
	Hint   string // what to do, for codes that are known
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s returned %d", e.Op, e.Code)
	if e.Result != "" {
		s += " (" + e.Result + ")"
	}
	if e.Text != "" {
		s += ": " + e.Text
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	if e.Log != "" {
		s += "; logs are in " + e.Log
	}
	return s
}

// resultNotSupported and others are the codes of HcclResult that matter here.
const (
	resultNotSupported = 5
	resultAgain        = 20
	resultRemote       = 21
)

// results are the texts of HcclResult, for libraries that have none.
var results = [...]string{
	"no error", "parameter error", "empty pointer", "memory error", "internal error", "not support feature",
	"not found specific resource", "resource unavailable", "call system interface error", "timeout", "open file fail",
	"tcp connect fail", "roce connect fail", "tcp transfer fail", "roce transfer fail", "call runtime api fail",
	"call driver api fail", "call profiling api fail", "call cce api fail", "call network api fail", "try again",
	"error cqe", "error communicator suspending", "retry constraint", "out of memory",
}

func resultText(code int32) string {
	if code >= 0 && int(code) < len(results) {
		return results[code]
	}
	return ""
}

var errorCode = regexp.MustCompile(`\bE[IJLE]\d{4}\b`)

// hint finds the first known code of the libraries in a text and says what to do
// about it.
func hint(text string) string {
	for _, code := range errorCode.FindAllString(text, -1) {
		if h := hintOf(code); h != "" {
			return code + ": " + h
		}
	}
	return ""
}

func hintOf(code string) string {
	switch code {
	case "EI0001":
		return "an environment variable of HCCL has a value that it does not take"
	case "EI0002":
		return "a rank waited in vain for another one, which died, is slow, or called something else; look for the earliest other error, then raise HCCL_EXEC_TIMEOUT"
	case "EI0003":
		return "a call had an argument that HCCL does not take"
	case "EI0004", "EI0014", "EI0017":
		return "the rank table is at fault; \"train diag -rank-table FILE\" says where"
	case "EI0005":
		return "ranks called with different arguments"
	case "EI0006":
		return "peers did not connect: not started, late, or on another network or TLS setting (hccn_tool -i N -tls -g); raise HCCL_CONNECT_TIMEOUT on all ranks"
	case "EI0007":
		return "the host is out of memory; each communicator takes two buffers of HCCL_BUFFSIZE"
	case "EI0008":
		return "hosts have different versions of CANN"
	case "EI0009":
		return "the device's network is down; see hccn_tool -i N -link -g"
	case "EI0010":
		return "devices of one host do not reach each other directly; try HCCL_INTRA_ROCE_ENABLE=1"
	case "EI0011":
		return "the device is out of memory; lower HCCL_BUFFSIZE or use fewer communicators"
	case "EI0012":
		return "a copy between devices failed: a peer ended or a buffer was freed"
	case "EI0013":
		return "the network lost packets or a peer ended"
	case "EI0015":
		return "not all ranks reached the root; set HCCL_SOCKET_IFNAME or HCCL_IF_IP"
	case "EI0016":
		return "ranks have different settings"
	case "EI0019", "EI0020", "EJ0003":
		return "a port is taken by another job; set HCCL_IF_BASE_PORT, or HCCL_HOST_SOCKET_PORT_RANGE and HCCL_NPU_SOCKET_PORT_RANGE to auto"
	case "EJ0001":
		return "an earlier job is still alive on the device; wait ten seconds or end what is left of it"
	case "EJ0002":
		return "a port of the device is down"
	case "EJ0004":
		return "the device's address is wrong; see hccn_tool -i N -ip -g"
	case "EL0001":
		return "there is no such device"
	case "EL0004":
		return "the device is out of memory"
	case "EL0009":
		return "the device has no more streams"
	}
	return ""
}

// logDir is where the libraries of this process write.
func logDir(getenv func(string) string) string {
	if getenv == nil {
		return ""
	}
	if dir := getenv("ASCEND_PROCESS_LOG_PATH"); dir != "" {
		return filepath.Join(dir, "debug", "plog")
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, "ascend", "log", "debug", "plog")
	}
	return ""
}

// oneLine joins the lines of a text.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
