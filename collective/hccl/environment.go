package hccl

import (
	"fmt"
	"slices"
	"strings"
)

// Environment lists the variables of a process's environment that HCCL and the
// Ascend runtime read, as NAME=VALUE in order, and says of those that they do not
// know, though articles name them, what to use instead.
func Environment(environ []string) (known, warnings []string) {
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		instead, isUnreal := unreal(name)
		switch {
		case isUnreal:
			warnings = append(warnings, fmt.Sprintf("%s is no variable of CANN and has no effect; use %s", name, instead))
		case name == "HCCL_ALGO" && strings.EqualFold(value, "hybrid"):
			warnings = append(warnings, "HCCL_ALGO=hybrid is no value that HCCL takes; leave it unset, or write level0:NA;level1:ring (or H-D_R, NHR, NB, pairwise)")
		case isKnown(name):
			known = append(known, entry)
		}
	}
	slices.Sort(known)
	slices.Sort(warnings)
	return known, warnings
}

// unreal says what to use in place of a name that CANN does not know.
func unreal(name string) (instead string, ok bool) {
	switch name {
	case "ASCEND_HCCL_ROOT_PATH":
		return "ASCEND_HOME_PATH and LD_LIBRARY_PATH, which CANN's set_env.sh sets", true
	case "HCCL_SERVER_PORT":
		return "HCCL_IF_BASE_PORT or HCCL_HOST_SOCKET_PORT_RANGE on the host, HCCL_NPU_SOCKET_PORT_RANGE on the device", true
	case "HCCL_PEER_NICS":
		return "HCCL_SOCKET_IFNAME or HCCL_IF_IP; those of devices are in /etc/hccn.conf or the rank table's device_ip", true
	case "HCCL_TIMEOUT_SEC":
		return "HCCL_CONNECT_TIMEOUT for connections and HCCL_EXEC_TIMEOUT for calls", true
	case "HCCL_RETRY_COUNT":
		return "HCCL_RDMA_RETRY_CNT for the network, HCCL_OP_RETRY_PARAMS for calls", true
	case "HCCL_HCCS_PORTS":
		return "nothing: the topology is read from the hardware", true
	case "HCCL_BUFF_SIZE":
		return "HCCL_BUFFSIZE, in MB", true
	case "HCCL_MAX_CHANNEL_NUM":
		return "HCCL_RDMA_QPS_PER_CONNECTION, which comes closest", true
	case "HCCL_RDMA_BATCH":
		return "HCCL_MULTI_QP_THRESHOLD, which comes closest", true
	case "HCCL_LOG_LEVEL":
		return "ASCEND_GLOBAL_LOG_LEVEL or ASCEND_MODULE_LOG_LEVEL=HCCL=1", true
	case "HCCL_PROFILING":
		return "the tool msprof", true
	case "HCCL_BINDS":
		return "the rank table's device_id", true
	}
	return "", false
}

func isKnown(name string) bool {
	for _, prefix := range []string{"HCCL_", "ASCEND_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return name == "RANK_TABLE_FILE" || name == "DEVICE_ID"
}
