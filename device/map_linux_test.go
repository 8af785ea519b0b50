//go:build !race

package device

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// status reads a figure of this process, in bytes.
func status(t *testing.T, key string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			require.NoError(t, err)
			return n << 10
		}
	}
	require.Fail(t, "no "+key)
	return 0
}

// A region takes memory for what is written, and leaves nothing behind.
func TestRegionsTakeWhatIsWritten(t *testing.T) {
	const written = 64 << 20
	var r HostRegions
	before := status(t, "RssAnon")
	b, err := r.Region(1 << 30)
	require.NoError(t, err)
	for i := 0; i < written; i += 4096 {
		b.Bytes()[i] = 1
	}
	grown := status(t, "RssAnon") - before
	require.Greater(t, grown, written*3/4) // the rest of the process may give some back meanwhile
	require.Less(t, grown, 2*written)
	r.Close()
	require.Less(t, status(t, "RssAnon")-before, written/2)
}

// When address space is short, a region is as large as it must be.
func TestRegionsOfLittleAddressSpace(t *testing.T) {
	m, _, err := mapRegion(1 << 46)
	if err == nil { // an address space of more than 47 bits
		unmapRegion(m)
	}
	m, room, err := mapRegion(3 << 20)
	require.NoError(t, err)
	require.Equal(t, hugePage, room)
	require.Len(t, m, regionSpace+hugePage)
	unmapRegion(m)
}
