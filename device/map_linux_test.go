//go:build !race

package device

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
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
	b, err := r.Region(1 << 20)
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

// What a region was asked for is there before it is used, and a region that
// goes while it is filled does not wait for all of it.
func TestRegionsAreFilled(t *testing.T) {
	const size = 64 << 20
	var r HostRegions
	if err := func() error {
		b, err := r.Region(hugePage)
		require.NoError(t, err)
		return populate(b.Bytes()[:hugePage])
	}(); err != nil {
		require.ErrorIs(t, err, unix.EINVAL, "a kernel before 5.14")
		return
	}
	before := status(t, "RssAnon")
	b, err := r.Region(size)
	require.NoError(t, err)
	r.filler.running.Wait()
	require.Greater(t, status(t, "RssAnon")-before, size*3/4)
	require.Zero(t, b.Bytes()[size-1])
	_, err = r.Region(size)
	require.NoError(t, err)
	r.Close()
	require.Less(t, status(t, "RssAnon")-before, size/2)
	before = status(t, "RssAnon")
	var s HostRegions
	large, err := s.Alloc(F32, size/4)
	require.NoError(t, err)
	s.filler.running.Wait()
	require.Greater(t, status(t, "RssAnon")-before, size*3/4)
	require.Zero(t, large.F32()[size/4-1])
	more, err := s.Region(size)
	require.NoError(t, err)
	s.Release(more) // which may have been filled in part
	s.Close()
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
