package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int{
		"0": 0, "1": 1, "100B": 100, "1KiB": 1024, "1kib": 1024, " 64 MiB ": 64 << 20, "2GiB": 2 << 30,
		"1KB": 1000, "1kB": 1000, "3MB": 3e6, "1GB": 1e9, "1.5KiB": 1536, "0.25MB": 250_000, "1024GiB": 1 << 40,
		"67108864": 64 << 20,
	} {
		got, err := ParseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", "KiB", "-1", "+1", "1.KiB", ".5KiB", "1.5", "0.3KiB", "1e3", "1KiBs", "1 K", "1TiB", "0x10", "1,000",
		"1025GiB", "99999999999999999999", "1.0000001MiB", "1..2KiB", "1_000", "١",
	} {
		_, err := ParseSize(text)
		require.Error(t, err, "%q", text)
	}
}

func TestParseSizes(t *testing.T) {
	for text, want := range map[string][]int{
		"1KiB":            {1024},
		"1KiB,64KiB,1MiB": {1024, 65536, 1 << 20},
		"4..40":           {4, 8, 16, 32},
		"0,1KB..4KB":      {0, 1000, 2000, 4000},
		"8..8":            {8},
	} {
		got, err := ParseSizes(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "1KiB,", "8..4", "0..4", "..4", "4..", "1..2..4"} {
		_, err := ParseSizes(text)
		require.Error(t, err, "%q", text)
	}
}

func FuzzParseSizes(f *testing.F) {
	for _, text := range []string{"1KiB,64KiB,1MiB", "1..1024GiB", "1.5MB", "0", "b", "9999999999999999KiB"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sizes, err := ParseSizes(text)
		if err != nil {
			return
		}
		require.NotEmpty(t, sizes)
		for _, size := range sizes {
			require.True(t, size >= 0 && size <= largestSize, "%q: %d", text, size)
			again, err := ParseSize(FormatSize(size))
			require.NoError(t, err)
			require.Equal(t, size, again, "%q as %q", text, FormatSize(size))
		}
	})
}

func TestSizesAndTimesInWords(t *testing.T) {
	for size, want := range map[int]string{0: "0 B", 1000: "1 KB", 1023: "1023 B", 1024: "1 KiB", 3 << 19: "1536 KiB", 64 << 20: "64 MiB", 5e9: "5 GB", 3 << 30: "3 GiB"} {
		require.Equal(t, want, FormatSize(size))
	}
	for us, want := range map[float64]string{0.2: "0.20 us", 12.34: "12.3 us", 999: "999 us", 1234: "1.23 ms", 65_100: "65.1 ms", 2.5e6: "2.50 s"} {
		require.Equal(t, want, formatTime(us))
	}
	require.Equal(t, "110 KiB", roughSize(110*1024))
	require.Equal(t, "1.00 MiB", roughSize(1<<20))
	require.Equal(t, "2.05 GB/s", formatRate(2.05))
	require.Equal(t, "270 MB/s", formatRate(0.27))
}
