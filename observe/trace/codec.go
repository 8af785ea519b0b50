package trace

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gradfusion/gradfusion/observe"
)

// The coded form: the magic; rank, shift and lost; the strings, each once; the
// spans, each a kind byte and eight varints (lane and name as string numbers,
// start relative to the span before, length, step, micro, bytes, bytes in).
const (
	magic       = "gfspan1\n"
	leastString = 1 // bytes of the shortest coded string
	leastSpan   = 9
)

// Encode appends r in the coded form to dst, about 20 bytes a span.
func Encode(dst []byte, r RankSpans) []byte {
	dst = append(dst, magic...)
	dst = binary.AppendVarint(dst, int64(r.Rank))
	dst = binary.AppendVarint(dst, r.Shift)
	dst = binary.AppendVarint(dst, int64(r.Lost))
	numbers := map[string]uint64{}
	var texts []string
	for i := range r.Spans {
		for _, s := range [2]string{r.Spans[i].Lane, r.Spans[i].Name} {
			if _, known := numbers[s]; !known {
				numbers[s] = uint64(len(texts))
				texts = append(texts, s)
			}
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(texts)))
	for _, s := range texts {
		dst = binary.AppendUvarint(dst, uint64(len(s)))
		dst = append(dst, s...)
	}
	dst = binary.AppendUvarint(dst, uint64(len(r.Spans)))
	var before int64
	for _, s := range r.Spans {
		dst = append(dst, byte(s.Kind))
		dst = binary.AppendUvarint(dst, numbers[s.Lane])
		dst = binary.AppendUvarint(dst, numbers[s.Name])
		dst = binary.AppendVarint(dst, s.Start-before)
		dst = binary.AppendVarint(dst, s.End-s.Start)
		dst = binary.AppendVarint(dst, int64(s.Step))
		dst = binary.AppendVarint(dst, int64(s.Micro))
		dst = binary.AppendVarint(dst, s.Bytes)
		dst = binary.AppendVarint(dst, s.BytesIn)
		before = s.Start
	}
	return dst
}

// Decode reads what Encode wrote, which b must hold exactly. The result shares
// no memory with b; it takes memory in proportion to b, whatever b claims.
func Decode(b []byte) (RankSpans, error) {
	d := decoder{data: b}
	r := d.rankSpans()
	if d.err == nil && d.at != len(b) {
		d.fail(fmt.Sprintf("%d bytes after the last span", len(b)-d.at))
	}
	if d.err != nil {
		return RankSpans{}, d.err
	}
	return r, nil
}

// decoder reads forward and keeps its first error, after which it reads zeros.
type decoder struct {
	data []byte
	at   int
	err  error
}

func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("trace: coded spans, byte %d of %d: %w", d.at, len(d.data), errors.New(what))
		d.at = len(d.data)
	}
}

func (d *decoder) rankSpans() (r RankSpans) {
	if string(d.bytes(len(magic))) != magic {
		d.at = 0
		d.fail("no spans start here")
		return r
	}
	r.Rank, r.Shift, r.Lost = int(d.signed()), d.signed(), int(d.signed())
	texts := make([]string, d.count("strings", leastString))
	for i := range texts {
		texts[i] = string(d.bytes(d.count("bytes of a string", 1)))
	}
	r.Spans = make([]observe.Span, d.count("spans", leastSpan))
	var before int64
	for i := range r.Spans {
		if d.err != nil {
			return RankSpans{}
		}
		s := &r.Spans[i]
		d.span(s, texts, before)
		before = s.Start
	}
	return r
}

func (d *decoder) span(s *observe.Span, texts []string, before int64) {
	if kind := d.bytes(1); len(kind) == 1 {
		s.Kind = observe.Kind(kind[0])
	}
	if !s.Kind.Valid() {
		d.fail("a span of an unknown kind")
	}
	s.Lane, s.Name = d.text(texts), d.text(texts)
	s.Start = before + d.signed()
	s.End = s.Start + d.signed()
	s.Step, s.Micro = int(d.signed()), int(d.signed())
	s.Bytes, s.BytesIn = d.signed(), d.signed()
}

// bytes returns the next n bytes, or nil and an error.
func (d *decoder) bytes(n int) []byte {
	if n > len(d.data)-d.at {
		d.fail("the data end too early")
		return nil
	}
	d.at += n
	return d.data[d.at-n : d.at]
}

func (d *decoder) unsigned() uint64 {
	v, n := binary.Uvarint(d.data[d.at:])
	if n <= 0 {
		d.fail("the data end within a number, or it is too large")
		return 0
	}
	d.at += n
	return v
}

func (d *decoder) signed() int64 {
	v, n := binary.Varint(d.data[d.at:])
	if n <= 0 {
		d.fail("the data end within a number, or it is too large")
		return 0
	}
	d.at += n
	return v
}

// count reads how many things of at least size bytes each are to follow.
func (d *decoder) count(what string, size int) int {
	n := d.unsigned()
	if n > uint64(len(d.data)-d.at)/uint64(size) {
		d.fail(fmt.Sprintf("%d %s do not fit into what follows", n, what))
		return 0
	}
	return int(n)
}

func (d *decoder) text(texts []string) string {
	n := d.unsigned()
	if n >= uint64(len(texts)) {
		d.fail("a string that is not there")
		return ""
	}
	return texts[n]
}
