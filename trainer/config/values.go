package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The types here have a text form of their own. UnmarshalText returns an error
// that reads on after "wants": "a whole number or auto".

// Count is a number, or 0 for auto.
type Count int

// Or returns c, or n when c is auto.
func (c Count) Or(n int) int {
	if c == 0 {
		return n
	}
	return int(c)
}

// UnmarshalText reads auto or a number of at least 1.
func (c *Count) UnmarshalText(text []byte) error {
	if string(text) == "auto" {
		*c = 0
		return nil
	}
	n, err := positive(string(text))
	if err != nil {
		return errors.New("auto or a whole number of at least 1")
	}
	*c = Count(n)
	return nil
}

// MarshalText is the inverse of UnmarshalText.
func (c Count) MarshalText() ([]byte, error) {
	if c == 0 {
		return []byte("auto"), nil
	}
	return strconv.AppendInt(nil, int64(c), 10), nil
}

// Every is an interval, of which one field is set. The zero value is never.
type Every struct {
	Steps, Epochs int
	Time          time.Duration
}

// UnmarshalText reads "20 steps", "1 epoch", "10m" or "never".
func (e *Every) UnmarshalText(text []byte) error {
	wrong := errors.New(`an interval such as "20 steps", "1 epoch", "10m" or "never"`)
	s := string(text)
	if s == "never" {
		*e = Every{}
		return nil
	}
	if number, unit, two := strings.Cut(s, " "); two {
		n, err := positive(number)
		switch unit = strings.TrimSpace(unit); {
		case err != nil:
			return wrong
		case unit == "step" || unit == "steps":
			*e = Every{Steps: n}
		case unit == "epoch" || unit == "epochs":
			*e = Every{Epochs: n}
		default:
			return wrong
		}
		return nil
	}
	t, err := time.ParseDuration(s)
	if err != nil || t <= 0 {
		return wrong
	}
	*e = Every{Time: t}
	return nil
}

// MarshalText is the inverse of UnmarshalText.
func (e Every) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

func (e Every) String() string {
	switch {
	case e.Steps > 0:
		return Plural(e.Steps, "step")
	case e.Epochs > 0:
		return Plural(e.Epochs, "epoch")
	case e.Time > 0:
		return duration(e.Time)
	}
	return "never"
}

// Span is a range of numbers, both ends included. The zero value is auto.
type Span struct{ Low, High int }

// UnmarshalText reads auto, N or N..M.
func (s *Span) UnmarshalText(text []byte) error {
	wrong := errors.New("a whole number of at least 1, or a range such as 2..8")
	if string(text) == "auto" {
		*s = Span{}
		return nil
	}
	low, high, two := strings.Cut(string(text), "..")
	if !two {
		high = low
	}
	a, errLow := positive(low)
	b, errHigh := positive(high)
	if errLow != nil || errHigh != nil || a > b {
		return wrong
	}
	*s = Span{a, b}
	return nil
}

// MarshalText is the inverse of UnmarshalText.
func (s Span) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s Span) String() string {
	switch {
	case s == Span{}:
		return "auto"
	case s.Low == s.High:
		return strconv.Itoa(s.Low)
	}
	return fmt.Sprintf("%d..%d", s.Low, s.High)
}

// LossScale is a fixed factor, or 0 for dynamic.
type LossScale float64

// UnmarshalText reads dynamic or a number above 0.
func (l *LossScale) UnmarshalText(text []byte) error {
	return autoFloat((*float64)(l), string(text), "dynamic")
}

// MarshalText is the inverse of UnmarshalText.
func (l LossScale) MarshalText() ([]byte, error) { return floatText(float64(l), "dynamic"), nil }

// Megabytes is a number of 2^20 bytes, or 0 for auto.
type Megabytes float64

// UnmarshalText reads auto or a number above 0.
func (m *Megabytes) UnmarshalText(text []byte) error {
	return autoFloat((*float64)(m), string(text), "auto")
}

// MarshalText is the inverse of UnmarshalText.
func (m Megabytes) MarshalText() ([]byte, error) { return floatText(float64(m), "auto"), nil }

// Bytes is a size, or 0 for auto.
type Bytes int64

// UnmarshalText reads auto, or a whole number with B, KiB, MiB, GiB (powers of
// two) or KB, MB, GB.
func (b *Bytes) UnmarshalText(text []byte) error {
	if string(text) == "auto" {
		*b = 0
		return nil
	}
	wrong := errors.New("auto or a size such as 256KiB or 1MiB")
	digits := strings.TrimRight(string(text), "BKMGi ")
	n, err := positive(digits)
	if err != nil {
		return wrong
	}
	for _, unit := range units() {
		if strings.TrimSpace(string(text)[len(digits):]) == unit.name {
			if n > math.MaxInt/unit.bytes {
				return wrong
			}
			*b = Bytes(n * unit.bytes)
			return nil
		}
	}
	return wrong
}

// MarshalText is the inverse of UnmarshalText.
func (b Bytes) MarshalText() ([]byte, error) {
	if b == 0 {
		return []byte("auto"), nil
	}
	for _, unit := range units() {
		if int(b)%unit.bytes == 0 {
			return []byte(strconv.Itoa(int(b)/unit.bytes) + unit.name), nil
		}
	}
	return nil, fmt.Errorf("size %d", int(b))
}

type unit struct {
	name  string
	bytes int
}

func units() []unit {
	return []unit{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1}}
}

// Names is a list of names, or nil for auto, or the name of a CSV file alone.
type Names []string

// UnmarshalText reads auto or the name of a file; a list is not a text.
func (n *Names) UnmarshalText(text []byte) error {
	switch {
	case string(text) == "auto":
		*n = nil
	case IsFile(string(text)):
		*n = Names{string(text)}
	default:
		return errors.New("auto, a list such as [a, b], or a CSV file")
	}
	return nil
}

// UnmarshalText reads the name alone and clears the settings of another format.
func (w *Wire) UnmarshalText(text []byte) error {
	*w = Wire{Name: string(text)}
	return nil
}

// UnmarshalText reads the name alone and clears the files.
func (t *TLS) UnmarshalText(text []byte) error {
	*t = TLS{Name: string(text)}
	return nil
}

// UnmarshalText reads the name alone.
func (s *Schedule) UnmarshalText(text []byte) error {
	s.Name = string(text)
	return nil
}

func positive(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err == nil && (n < 1 || n > math.MaxInt32 || s[0] == '+') {
		err = strconv.ErrRange
	}
	return n, err
}

func autoFloat(out *float64, text, auto string) error {
	if text == auto {
		*out = 0
		return nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0) || math.IsInf(v, 0) {
		return errors.New(auto + " or a number above 0")
	}
	*out = v
	return nil
}

func floatText(v float64, auto string) []byte {
	if v == 0 {
		return []byte(auto)
	}
	return strconv.AppendFloat(nil, v, 'g', -1, 64)
}

// Plural writes a number of things, as in "1 rank" and "2 micro-batches".
func Plural(n int, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "batch"):
		noun += "es"
	default:
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// duration drops the zero parts that time.Duration prints: 10m, not 10m0s.
func duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
