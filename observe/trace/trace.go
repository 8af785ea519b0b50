package trace

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strconv"

	"github.com/gradfusion/gradfusion/observe"
)

// RankSpans is what one rank recorded.
type RankSpans struct {
	Rank  int
	Shift int64 // nanoseconds to add to the rank's clock, to match rank 0's
	Lost  int   // spans that were overwritten before they could be read
	Spans []observe.Span
}

// Write writes the spans of all ranks as one trace: complete events in
// microseconds since the earliest span, process id = rank, thread id = lane.
// Spans of a lane that overlap without one holding the other get lanes of
// their own, since viewers draw nested spans only. The same spans give the
// same bytes. Beside the spans it keeps an index of one rank at a time.
func Write(w io.Writer, ranks []RankSpans) error {
	ranks = slices.Clone(ranks)
	slices.SortStableFunc(ranks, func(a, b RankSpans) int { return cmp.Compare(a.Rank, b.Rank) })
	out := &writer{out: bufio.NewWriterSize(w, 1<<16), start: earliest(ranks), quoted: map[string]string{}}
	out.raw(`{"displayTimeUnit":"ms","otherData":{"start_unix_ns":"`)
	out.raw(strconv.FormatInt(out.start, 10))
	out.raw(`"},"traceEvents":[`)
	for _, r := range ranks {
		out.rank(r)
	}
	out.raw("\n]}\n")
	return out.out.Flush() // a bufio.Writer keeps its first error
}

// earliest returns the shifted start of the first span of all.
func earliest(ranks []RankSpans) (start int64) {
	first := true
	for _, r := range ranks {
		for _, s := range r.Spans {
			if at := s.Start + r.Shift; first || at < start {
				start, first = at, false
			}
		}
	}
	return start
}

type writer struct {
	out    *bufio.Writer
	start  int64
	events int
	line   []byte
	quoted map[string]string
}

func (w *writer) raw(s string) { w.out.WriteString(s) }

// rank writes the metadata and the spans of one rank.
func (w *writer) rank(r RankSpans) {
	lanes := layOut(r.Spans)
	w.metadata(r.Rank, -1, "process_name", "name", w.quote("rank "+strconv.Itoa(r.Rank)))
	w.metadata(r.Rank, -1, "process_sort_index", "sort_index", strconv.Itoa(r.Rank))
	if r.Lost > 0 {
		w.metadata(r.Rank, -1, "process_labels", "labels", w.quote(strconv.Itoa(r.Lost)+" spans lost"))
	}
	for id, lane := range lanes {
		w.metadata(r.Rank, id, "thread_name", "name", w.quote(lane.name))
		w.metadata(r.Rank, id, "thread_sort_index", "sort_index", strconv.Itoa(id))
	}
	for id, lane := range lanes {
		for _, i := range lane.spans {
			w.span(r, id, &r.Spans[i])
		}
	}
}

// metadata writes an event that names a process or, with a lane, a thread.
func (w *writer) metadata(rank, lane int, kind, key, value string) {
	b := append(w.begin(), `{"ph":"M","pid":`...)
	b = strconv.AppendInt(b, int64(rank), 10)
	if lane >= 0 {
		b = append(b, `,"tid":`...)
		b = strconv.AppendInt(b, int64(lane), 10)
	}
	b = append(b, `,"name":"`+kind+`","args":{"`+key+`":`+value+`}}`...)
	w.finish(b)
}

func (w *writer) span(r RankSpans, lane int, s *observe.Span) {
	b := append(w.begin(), `{"ph":"X","pid":`...)
	b = strconv.AppendInt(b, int64(r.Rank), 10)
	b = append(b, `,"tid":`...)
	b = strconv.AppendInt(b, int64(lane), 10)
	b = append(b, `,"ts":`...)
	b = appendMicroseconds(b, s.Start+r.Shift-w.start)
	b = append(b, `,"dur":`...)
	b = appendMicroseconds(b, max(s.End-s.Start, 0))
	b = append(b, `,"cat":"`+s.Kind.String()+`","name":`+w.quote(cmp.Or(s.Name, s.Kind.String()))...)
	b = append(b, `,"args":{"step":`...)
	b = strconv.AppendInt(b, int64(s.Step), 10)
	b = append(b, `,"micro":`...)
	b = strconv.AppendInt(b, int64(s.Micro), 10)
	if s.Bytes != 0 || s.BytesIn != 0 {
		b = append(b, `,"bytes_sent":`...)
		b = strconv.AppendInt(b, s.Bytes, 10)
		b = append(b, `,"bytes_received":`...)
		b = strconv.AppendInt(b, s.BytesIn, 10)
	}
	w.finish(append(b, "}}"...))
}

// begin returns the empty line that an event is put together in.
func (w *writer) begin() []byte {
	b := w.line[:0]
	if w.events > 0 {
		b = append(b, ',')
	}
	w.events++
	return append(b, '\n')
}

func (w *writer) finish(b []byte) {
	w.out.Write(b)
	w.line = b
}

// quote returns s as a JSON string.
func (w *writer) quote(s string) string {
	q, ok := w.quoted[s]
	if !ok {
		b, _ := json.Marshal(s) // a string cannot fail
		q = string(b)
		w.quoted[s] = q
	}
	return q
}

// appendMicroseconds writes nanoseconds as microseconds with three decimals,
// exactly, which a float64 since 1970 could not hold.
func appendMicroseconds(b []byte, ns int64) []byte {
	u := uint64(ns)
	if ns < 0 {
		b, u = append(b, '-'), -u
	}
	b = strconv.AppendUint(b, u/1000, 10)
	return append(b, '.', byte('0'+u/100%10), byte('0'+u/10%10), byte('0'+u%10))
}
