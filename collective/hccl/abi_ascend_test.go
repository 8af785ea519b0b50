//go:build ascend && linux

package hccl

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// layout is a C program with HCCL's types as its documentation has them; it prints
// sizes and offsets.
const layout = `
#include <stdint.h>
#include <stddef.h>
#include <stdio.h>
typedef struct { char internal[4108]; } HcclRootInfo;
typedef struct { int32_t sendRecvType; void *buf; uint64_t count; int32_t dataType; uint32_t remoteRank; } HcclSendRecvItem;
typedef struct {
	uint64_t size; uint32_t magic; uint32_t version; uint64_t reserved;
	uint32_t hcclBufferSize; uint32_t hcclDeterministic;
	char hcclCommName[128]; char hcclUdi[128];
	uint32_t hcclOpExpansionMode; uint32_t hcclRdmaTrafficClass; uint32_t hcclRdmaServiceLevel;
} __attribute__((packed)) HcclCommConfig;
int main(void) {
	printf("%zu\n", sizeof(HcclRootInfo));
	printf("%zu %zu %zu %zu %zu %zu\n", sizeof(HcclSendRecvItem), offsetof(HcclSendRecvItem, sendRecvType), offsetof(HcclSendRecvItem, buf),
		offsetof(HcclSendRecvItem, count), offsetof(HcclSendRecvItem, dataType), offsetof(HcclSendRecvItem, remoteRank));
	printf("%zu %zu %zu %zu %zu %zu %zu %zu\n", sizeof(HcclCommConfig), offsetof(HcclCommConfig, magic), offsetof(HcclCommConfig, version),
		offsetof(HcclCommConfig, hcclBufferSize), offsetof(HcclCommConfig, hcclDeterministic), offsetof(HcclCommConfig, hcclCommName),
		offsetof(HcclCommConfig, hcclRdmaTrafficClass), offsetof(HcclCommConfig, hcclRdmaServiceLevel));
	printf("%zu\n", offsetof(HcclCommConfig, hcclDeterministic) + sizeof(uint32_t));
	return 0;
}
`

// TestLayout is trap 3: the headers are for C++ only, so that our own structures
// have to be laid out as a compiler does.
func TestLayout(t *testing.T) {
	source := filepath.Join(t.TempDir(), "layout.c")
	program := source + ".out"
	require.NoError(t, os.WriteFile(source, []byte(layout), 0o600))
	out, err := exec.Command("gcc", "-o", program, source).CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(program).CombinedOutput()
	require.NoError(t, err)
	var i item
	require.Equal(t, fmt.Sprintln(rootInfoSize)+
		fmt.Sprintln(unsafe.Sizeof(i), unsafe.Offsetof(i.direction), unsafe.Offsetof(i.buffer), unsafe.Offsetof(i.count), unsafe.Offsetof(i.typ), unsafe.Offsetof(i.peer))+
		fmt.Sprintln(configSize, atMagic, atVersion, atBufferSize, atDetermined, atName, atTrafficClass, atServiceLevel)+
		fmt.Sprintln(configOldSize), string(out))
}

// TestConfig is trap 4: the header's inline function that fills the structure is
// no symbol, and old libraries take its first version only.
func TestConfig(t *testing.T) {
	b := commConfig(5, 20, true, "name")
	require.Len(t, b, configSize)
	require.Equal(t, []byte{44, 1, 0, 0, 0, 0, 0, 0, 0xf0, 0xf0, 0xf0, 0xf0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0}, b[:32])
	require.Equal(t, "name\x00", string(b[32:37]))
	require.Equal(t, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, b[292:])
	for _, capability := range []uint32{0, 2} {
		b = commConfig(capability, 0, false, "")
		require.Equal(t, []byte{32, 0, 0, 0}, b[:4])
		require.Equal(t, byte(1), b[atVersion])
		require.Equal(t, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, b[24:32])
	}
}
