package bench

import (
	"fmt"
	"strconv"
	"strings"
)

// largestSize is the largest size that can be asked for.
const largestSize = 1 << 40

type unit struct {
	name string
	size int
}

// units of sizes, the longer names first.
func units() []unit {
	return []unit{
		{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30},
		{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"b", 1},
	}
}

// ParseSize reads a number of bytes: "1KiB", "64 MiB", "1.5GiB" (powers of two),
// "1KB", "1MB", "1GB" (powers of ten), "100B" or "100". Case does not matter.
func ParseSize(text string) (int, error) {
	digits, factor := strings.ToLower(strings.TrimSpace(text)), 1
	for _, u := range units() {
		if rest, ok := strings.CutSuffix(digits, u.name); ok {
			digits, factor = strings.TrimRight(rest, " "), u.size
			break
		}
	}
	whole, fraction, dotted := strings.Cut(digits, ".")
	n, err := strconv.ParseUint(whole, 10, 63)
	if err != nil || len(whole) > 15 || dotted && (fraction == "" || len(fraction) > 6) {
		return 0, sizeError(text)
	}
	if n > largestSize/uint64(factor) {
		return 0, fmt.Errorf("size %q is more than 1024 GiB", text)
	}
	bytes := int(n) * factor
	if dotted {
		part, err := strconv.ParseUint(fraction, 10, 63)
		scale := 1
		for range fraction {
			scale *= 10
		}
		if err != nil || int(part)*factor%scale != 0 {
			return 0, sizeError(text)
		}
		bytes += int(part) * factor / scale
	}
	return bytes, nil
}

func sizeError(text string) error {
	return fmt.Errorf("%q is no size; write a whole number of bytes such as 1KiB, 64MiB (powers of two), 1KB or 1MB (powers of ten)", text)
}

// ParseSizes reads a list such as "1KiB,1MiB". An entry LOW..HIGH stands for
// LOW, 2 LOW, 4 LOW and so on up to HIGH.
func ParseSizes(text string) ([]int, error) {
	var sizes []int
	for entry := range strings.SplitSeq(text, ",") {
		low, high, ranged := strings.Cut(entry, "..")
		first, err := ParseSize(low)
		if err != nil {
			return nil, err
		}
		last := first
		if ranged {
			if last, err = ParseSize(high); err != nil {
				return nil, err
			}
			if first == 0 || last < first {
				return nil, fmt.Errorf("the sizes %q do not ascend from more than 0", entry)
			}
		}
		for size := first; size <= last; size *= 2 {
			sizes = append(sizes, size)
			if size == 0 {
				break
			}
		}
	}
	return sizes, nil
}

// FormatSize writes a size as ParseSize reads it, in the largest unit of which
// it is a whole number.
func FormatSize(bytes int) string {
	for _, u := range []unit{{"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"KB", 1e3}} {
		if bytes >= u.size && bytes%u.size == 0 {
			return fmt.Sprintf("%d %s", bytes/u.size, u.name)
		}
	}
	return fmt.Sprintf("%d B", bytes)
}

// roughSize writes a size that was reckoned, with two or three digits.
func roughSize(bytes float64) string {
	name := "B"
	for _, next := range []string{"KiB", "MiB", "GiB"} {
		if bytes < 1000 {
			break
		}
		bytes, name = bytes/1024, next
	}
	return digits(bytes) + " " + name
}

// digits writes v >= 0 with at least three digits, or fewer where v is small.
func digits(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// formatTime writes a time given in microseconds.
func formatTime(us float64) string {
	switch {
	case us < 1000:
		return digits(us) + " us"
	case us < 1e6:
		return digits(us/1e3) + " ms"
	}
	return digits(us/1e6) + " s"
}
