package trainer

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// residentProcess, in its environment, makes the test a process that touches
// memory it shares with the test.
const residentProcess = "GRADFUSION_TEST_RESIDENT"

// Two processes that both touch 64 MiB count 32 each: what the other one touches
// makes this one's figure smaller.
func TestResidentCountsSharedPagesOnce(t *testing.T) {
	const size, slack = 64 << 20, 12 << 20 // the binary's pages are shared too
	if os.Getenv(residentProcess) != "" {
		touchShared(t, os.NewFile(3, "shared"), size)
		_, err := os.Stdout.WriteString("touched\n")
		require.NoError(t, err)
		_, err = os.Stdin.Read(make([]byte, 1)) // ends with the test
		require.Error(t, err)
		return
	}
	fd, err := unix.MemfdCreate("resident", unix.MFD_CLOEXEC)
	require.NoError(t, err)
	file := os.NewFile(uintptr(fd), "resident")
	defer file.Close()
	require.NoError(t, file.Truncate(size))
	touchShared(t, file, size)
	alone := resident()
	require.Greater(t, alone, float64(size))

	other := exec.Command(os.Args[0], "-test.run=^TestResidentCountsSharedPagesOnce$")
	other.Env = append(os.Environ(), residentProcess+"=1")
	other.ExtraFiles = []*os.File{file}
	in, err := other.StdinPipe()
	require.NoError(t, err)
	out, err := other.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, other.Start())
	word := make([]byte, len("touched\n"))
	_, err = out.Read(word)
	require.NoError(t, err)
	require.Equal(t, "touched\n", string(word))
	require.InDelta(t, alone-size/2, resident(), slack)
	require.NoError(t, in.Close())
	require.NoError(t, other.Wait())
}

func touchShared(t *testing.T, file *os.File, size int) {
	memory, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(memory)) })
	for i := 0; i < size; i += 4096 {
		memory[i] = 1
	}
}

func TestKilobytes(t *testing.T) {
	text := []byte("5595bf6ff000-7fffe954a000 ---p 00000000 00:00 0   [rollup]\nRss:                1740 kB\nPss:                 259 kB\nPss_Anon: 7 kB\n")
	for key, want := range map[string]float64{"Rss:": 1740, "Pss:": 259, "Pss_Anon:": 7, "Swap:": 0} {
		require.Equal(t, want, kilobytes(text, key), strconv.Quote(key))
	}
	require.Zero(t, kilobytes([]byte(strings.Repeat("nonsense\n", 3)), "Rss:"))
}
