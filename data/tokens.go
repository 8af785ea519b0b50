package data

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// Ignore is the target of a place that is not there: the last window of a text
// that is evaluated may be shorter than the others.
const Ignore = -1

// mostCharacters is how many different characters a text may have.
const mostCharacters = 1 << 16

// Tokens is a run of tokens in memory, as narrow as they allow. It is not
// changed once it is made, so it may be shared.
type Tokens struct {
	bytes []byte
	wide  []uint16 // when there are more than 256
}

// Len returns the number of tokens.
func (t Tokens) Len() int { return len(t.bytes) + len(t.wide) }

// At returns token i.
func (t Tokens) At(i int) int32 {
	if t.wide != nil {
		return int32(t.wide[i])
	}
	return int32(t.bytes[i])
}

// copyTo writes the tokens from position at on, as many as there are and dst
// takes, and returns how many.
func (t Tokens) copyTo(dst []int32, at int) int {
	n := min(len(dst), t.Len()-at)
	dst = dst[:n]
	if t.wide != nil {
		for i, v := range t.wide[at : at+n] {
			dst[i] = int32(v)
		}
		return n
	}
	for i, v := range t.bytes[at : at+n] {
		dst[i] = int32(v)
	}
	return n
}

// split cuts the run before position at.
func (t Tokens) split(at int) (front, back Tokens) {
	if t.wide != nil {
		return Tokens{wide: t.wide[:at:at]}, Tokens{wide: t.wide[at:]}
	}
	return Tokens{bytes: t.bytes[:at:at]}, Tokens{bytes: t.bytes[at:]}
}

// characters numbers the different characters of UTF-8 text in ascending order
// and returns them and the text as their numbers.
func characters(path string, text []byte) ([]rune, Tokens, error) {
	numbers, n := map[rune]uint16{}, 0
	for at := 0; at < len(text); n++ {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			return nil, Tokens{}, &FileError{Path: path, Offset: int64(at), Record: -1, Expected: "UTF-8 text, as data.tokens: characters asks for",
				Found: fmt.Sprintf("byte %#02x", text[at])}
		}
		numbers[r] = 0
		at += size
	}
	if len(numbers) > mostCharacters {
		return nil, Tokens{}, &FileError{Path: path, Offset: -1, Record: -1,
			Expected: fmt.Sprintf("at most %d different characters", mostCharacters), Found: fmt.Sprint(len(numbers))}
	}
	known := make([]rune, 0, len(numbers))
	for r := range numbers {
		known = append(known, r)
	}
	slices.Sort(known)
	for i, r := range known {
		numbers[r] = uint16(i)
	}
	var out Tokens
	if len(known) <= 256 {
		out.bytes = make([]byte, 0, n)
		for _, r := range string(text) {
			out.bytes = append(out.bytes, byte(numbers[r]))
		}
		return known, out, nil
	}
	out.wide = make([]uint16, 0, n)
	for _, r := range string(text) {
		out.wide = append(out.wide, numbers[r])
	}
	return known, out, nil
}
