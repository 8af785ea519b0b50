package tensorboard

import (
	"encoding/hex"
	"flag"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// files returns the event files of a folder in the order in which readers take
// them, which is that of their names.
func files(t *testing.T, dir string) (paths []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "events.out.tfevents.*"))
	require.NoError(t, err)
	return paths
}

func read(t *testing.T, path string) []event {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	all, err := events(b)
	require.NoError(t, err)
	return all
}

// Vectors of RFC 3720, appendix B.4, for the standard library's table and for
// the decoder; the masked one is that of a length of 24, with which every file
// of TensorFlow begins.
func TestChecksums(t *testing.T) {
	table := crc32.MakeTable(crc32.Castagnoli)
	ascending := make([]byte, 32)
	for i := range ascending {
		ascending[i] = byte(i)
	}
	for _, c := range []struct {
		in   []byte
		want uint32
	}{
		{nil, 0},
		{[]byte("123456789"), 0xe3069283},
		{make([]byte, 32), 0x8a9136aa},
		{[]byte(strings.Repeat("\xff", 32)), 0x62a8ab43},
		{ascending, 0x46dd794e},
	} {
		require.Equal(t, c.want, crc32.Checksum(c.in, table), "%x", c.in)
		require.Equal(t, c.want, castagnoli(c.in), "%x", c.in)
	}
	require.Equal(t, "a37f4b22", hex.EncodeToString(endRecord(append(beginRecord(nil), make([]byte, 24)...), 0, table)[8:12]))
}

// In the bubble the clock starts at midnight of 2000-01-01 and stands still.
func TestGoldenFile(t *testing.T) {
	const golden = "testdata/golden.hex"
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w, err := Open(dir, time.Now())
		require.NoError(t, err)
		require.NoError(t, w.Scalar(0, "loss", 2.5))
		require.NoError(t, w.Scalar(1, "loss", 0))
		require.NoError(t, w.Scalar(300, "eval/accuracy", 0.1))
		require.NoError(t, w.Scalar(-1, "\xff", math.Inf(-1))) // protocol buffers hold UTF-8 only
		require.NoError(t, w.Scalar(math.MaxInt64, strings.Repeat("long ", 30), 1e300))
		require.NoError(t, w.Close())
	})
	b, err := os.ReadFile(files(t, dir)[0])
	require.NoError(t, err)
	text := hex.Dump(b)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(text), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), text)

	const wall = 946684800
	all, err := events(b)
	require.NoError(t, err)
	require.Equal(t, []event{
		{wall: wall, version: "brain.Event:2"},
		{wall: wall, start: true},
		{wall: wall, tag: "loss", value: 2.5},
		{wall: wall, step: 1, tag: "loss"},
		{wall: wall, step: 300, tag: "eval/accuracy", value: 0.1},
		{wall: wall, step: -1, tag: "\uFFFD", value: float32(math.Inf(-1))},
		{wall: wall, step: math.MaxInt64, tag: strings.Repeat("long ", 30), value: float32(math.Inf(1))},
	}, all)
}

func TestWriterFlushesAtIntervals(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w, err := Open(dir, time.Now())
		require.NoError(t, err)
		path := files(t, dir)[0]
		require.Len(t, read(t, path), 1, "a reader finds a valid file at once")
		require.NoError(t, w.Scalar(0, "loss", 1))
		require.Len(t, read(t, path), 1)
		<-time.After(flushInterval) // of the bubble's clock: at once
		require.NoError(t, w.Scalar(1, "loss", 1))
		require.Len(t, read(t, path), 4)
		require.NoError(t, w.Scalar(2, "loss", 1))
		require.Len(t, read(t, path), 4)
		require.NoError(t, w.Flush())
		require.Len(t, read(t, path), 5)
		long := strings.Repeat("x", flushBytes)
		require.NoError(t, w.Scalar(3, long, 1))
		require.Len(t, read(t, path), 6, "a full buffer does not wait")
		require.NoError(t, w.Scalar(4, "loss", 1))
		require.NoError(t, w.Close())
		require.Len(t, read(t, path), 7)
	})
}

// shown is what a reader of a folder keeps: at a session start it forgets the
// steps from there on.
func shown(t *testing.T, dir string) (kept []event) {
	for _, path := range files(t, dir) {
		for _, e := range read(t, path) {
			if e.start {
				var before []event
				for _, old := range kept {
					if old.step < e.step {
						before = append(before, old)
					}
				}
				kept = before
			}
			if e.tag != "" {
				e.wall = 0
				kept = append(kept, e)
			}
		}
	}
	return kept
}

func TestResumedRunReplacesLaterSteps(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	start := time.Unix(1_700_000_000, 0)
	var want []event
	for run, c := range []struct {
		start     time.Time
		from, end int64
	}{
		{start, 1, 6},
		{start, 4, 9},                     // within the same second
		{start.Add(-time.Hour), 7, 8},     // a clock that was set back
		{start.Add(24 * time.Hour), 2, 4}, // far behind
	} {
		w, err := Open(dir, c.start)
		require.NoError(t, err)
		for step := c.from; step < c.end; step++ {
			require.NoError(t, w.Scalar(step, "loss", float64(run)))
		}
		require.NoError(t, w.Close())
		want = want[:min(len(want), int(c.from-1))]
		for step := c.from; step < c.end; step++ {
			want = append(want, event{step: step, tag: "loss", value: float32(run)})
		}
		require.Equal(t, want, shown(t, dir))
	}
	host, err := os.Hostname()
	require.NoError(t, err)
	var names []string
	for _, path := range files(t, dir) {
		names = append(names, filepath.Base(path))
	}
	rest := fmt.Sprintf(".%s.%d.0", host, os.Getpid())
	require.Equal(t, []string{namePrefix + "1700000000" + rest, namePrefix + "1700000001" + rest,
		namePrefix + "1700000002" + rest, namePrefix + "1700086400" + rest}, names)
}

func TestForeignNamesAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"summary.json", namePrefix, namePrefix + "x", namePrefix + "99.host", namePrefix + "99999999999.host",
		namePrefix + "-000000009.host", namePrefix + "1700000005"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	seconds, err := newest(dir)
	require.NoError(t, err)
	require.EqualValues(t, 1700000005, seconds)
}

func TestWriterErrors(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	require.NoError(t, os.WriteFile(taken, nil, 0o600))
	_, err := Open(taken, time.Now())
	require.ErrorContains(t, err, "tensorboard: ")
	require.ErrorContains(t, err, taken)

	w, err := Open(dir, time.Now())
	require.NoError(t, err)
	require.NoError(t, w.file.Close())
	require.NoError(t, w.Scalar(0, "loss", 1), "buffered")
	first := w.Flush()
	require.ErrorIs(t, first, os.ErrClosed)
	require.ErrorContains(t, first, files(t, dir)[0])
	require.Equal(t, first, w.Scalar(1, "loss", 1))
	require.Equal(t, first, w.Flush())
	require.Equal(t, first, w.Close())
}

func TestScalarDoesNotAllocate(t *testing.T) {
	w, err := Open(t.TempDir(), time.Now())
	require.NoError(t, err)
	defer w.Close()
	step := int64(0)
	require.Zero(t, testing.AllocsPerRun(10_000, func() { // long enough for some flushes
		step++
		_ = w.Scalar(step, "train/samples_per_sec", 0.12345)
	}))
}

func FuzzRoundTrip(f *testing.F) {
	f.Add(int64(0), "loss", 1.5, uint8(3))
	f.Add(int64(-7), "", math.NaN(), uint8(0))
	f.Add(int64(math.MaxInt64), "\xff\xfe", -0.0, uint8(200))
	table := crc32.MakeTable(crc32.Castagnoli)
	f.Fuzz(func(t *testing.T, step int64, tag string, value float64, damage uint8) {
		at := time.Unix(1_700_000_000, 500_000_000)
		b := endRecord(appendScalar(beginRecord(nil), at, step, tag, value), 0, table)
		n := len(b)
		b = endRecord(appendStart(beginRecord(b), at, step), n, table)
		all, err := events(b)
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Equal(t, math.Float32bits(float32(value)), math.Float32bits(all[0].value))
		all[0].value = 0 // equal already, and not a number is not equal to itself
		require.Equal(t, []event{{wall: 1_700_000_000.5, step: step, tag: tag}, {wall: 1_700_000_000.5, step: step, start: true}}, all)

		b[int(damage)%len(b)] ^= 1 << (damage % 8)
		_, err = events(b)
		require.ErrorIs(t, err, errDamaged, "a record's checksums see every single bit")
	})
}

// The decoder is fed with anything, so that damage is never a crash of a test.
func FuzzDecode(f *testing.F) {
	f.Add(appendScalar(nil, time.Unix(1, 0), 5, "loss", 1))
	f.Add([]byte{0x2a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := decode(b); err != nil {
			require.ErrorIs(t, err, errDamaged)
		}
	})
}
