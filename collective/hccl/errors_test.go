package hccl

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

func TestHints(t *testing.T) {
	for i := 1; i <= 20; i++ {
		if code := "EI00" + string([]byte{'0' + byte(i/10), '0' + byte(i%10)}); i != 18 { // of which nothing is known
			require.NotEmpty(t, hintOf(code), code)
		}
	}
	require.Equal(t, "EJ0001: "+hintOf("EJ0001"), hint("[init] EJ0001: Failed to initialize the HCCP process."))
	require.Empty(t, hint("EI9999: news"))
	require.Empty(t, hint(""))
}

func TestErrorText(t *testing.T) {
	e := &Error{Op: "HcclAllReduce", Code: 9, Result: resultText(9), Text: "EI0002: waited", Hint: "EI0002: look", Log: "/logs"}
	require.EqualError(t, e, "HcclAllReduce returned 9 (timeout): EI0002: waited; EI0002: look; logs are in /logs")
	require.EqualError(t, &Error{Op: "HcclSend", Code: 1041, Result: resultText(1041)}, "HcclSend returned 1041")
	require.Equal(t, "error cqe", resultText(resultRemote))
}

// TestEnvironment: the articles' names are answered with the true ones.
func TestEnvironment(t *testing.T) {
	known, warnings := Environment([]string{
		"HOME=/", "HCCL_BUFFSIZE=100", "RANK_TABLE_FILE=x.json", "HCCL_ALGO=hybrid", "HCCL_BUFF_SIZE=3", "HCCL_BINDS=0",
		"ASCEND_HCCL_ROOT_PATH=/", "HCCL_TIMEOUT_SEC=30", "HCCL_ALGO=level0:NA;level1:ring",
	})
	require.Equal(t, []string{"HCCL_ALGO=level0:NA;level1:ring", "HCCL_BUFFSIZE=100", "RANK_TABLE_FILE=x.json"}, known)
	require.Equal(t, []string{
		"ASCEND_HCCL_ROOT_PATH is no variable of CANN and has no effect; use ASCEND_HOME_PATH and LD_LIBRARY_PATH, which CANN's set_env.sh sets",
		"HCCL_ALGO=hybrid is no value that HCCL takes; leave it unset, or write level0:NA;level1:ring (or H-D_R, NHR, NB, pairwise)",
		"HCCL_BINDS is no variable of CANN and has no effect; use the rank table's device_id",
		"HCCL_BUFF_SIZE is no variable of CANN and has no effect; use HCCL_BUFFSIZE, in MB",
		"HCCL_TIMEOUT_SEC is no variable of CANN and has no effect; use HCCL_CONNECT_TIMEOUT for connections and HCCL_EXEC_TIMEOUT for calls",
	}, warnings)
}

func TestChips(t *testing.T) {
	for _, name := range []string{"Ascend910A", "Ascend910", "Ascend910ProB"} {
		require.True(t, chipOf(name).first, name)
	}
	for _, name := range []string{"Ascend910B3", "Ascend910_9391", "Ascend910C"} {
		require.False(t, chipOf(name).first, name)
	}
	first, later := chipOf("Ascend910A"), chipOf("Ascend910B1")
	require.False(t, first.reduces(device.BF16, collective.Sum))
	require.True(t, later.reduces(device.BF16, collective.Sum))
	require.False(t, later.reduces(device.BF16, collective.Prod))
	for _, typ := range []device.Type{device.U8, device.F64} {
		require.False(t, later.reduces(typ, collective.Sum))
	}
	third, pods := chipOf("Ascend910_9391"), [][]int{{0, 1}, {2, 3}}
	for _, tt := range []struct {
		chip
		typ   device.Type
		op    collective.Op
		parts bool
	}{
		{first, device.F32, collective.Sum, false}, {later, device.F32, collective.Sum, true}, {later, device.F32, collective.Prod, false},
		{later, device.I64, collective.Sum, false}, {third, device.I64, collective.Sum, true}, {later, device.U8, collective.Max, false},
	} {
		require.Equal(t, tt.parts, tt.reducesParts(tt.typ, tt.op), "%+v", tt)
	}
	require.False(t, first.hasParts([][]int{{0, 1}}))
	require.True(t, later.hasParts(pods))
	require.False(t, later.hasParts([][]int{{0, 1}, {2}}), "hosts with unequal numbers of devices")
	require.True(t, third.hasParts([][]int{{0, 1, 2}}))
	require.False(t, third.hasParts(pods), "more than one host")
	require.Equal(t, uintptr(typeInt16), first.moved(device.BF16))
	require.Equal(t, uintptr(typeBFP16), later.moved(device.BF16))
}

func TestFoldRoundsOnce(t *testing.T) {
	parts := make([]device.Buf, 3)
	for i, x := range []float32{2048, 1, 1} { // in f16, 2048 + 1 is 2048
		parts[i] = device.FromBytes(device.F16, make([]byte, 2))
		parts[i].U16()[0] = device.F32ToF16(x)
	}
	dst := device.FromBytes(device.F16, make([]byte, 2))
	collective.FoldParts(nil, collective.Sum, dst, parts)
	require.Equal(t, device.F32ToF16(2050), dst.U16()[0])
	scale(dst, parts[0], 2)
	require.Equal(t, device.F32ToF16(1024), dst.U16()[0])
}
