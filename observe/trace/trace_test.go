package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/gradfusion/gradfusion/observe"
	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("update", false, "rewrite the golden files")

// scripted is one step of two ranks, in which the call for bucket 0 runs under
// the backward of the first block.
func scripted() []RankSpans {
	const t = 1_700_000_000_000_000_000
	rank := func(n int, shift int64) RankSpans {
		at := func(kind observe.Kind, lane, name string, start, end int64) observe.Span {
			return observe.Span{Kind: kind, Lane: lane, Name: name, Start: t + start - shift, End: t + end - shift, Step: 3, Micro: n}
		}
		call := at(observe.Call, "world", "bucket 0", 40_500, 60_000)
		call.Bytes, call.BytesIn = 4096, 2048
		return RankSpans{Rank: n, Shift: shift, Spans: []observe.Span{
			call,
			at(observe.CallWait, "world", "bucket 0", 40_001, 40_500),
			at(observe.Forward, "compute", "block2", 10_000, 20_000),
			at(observe.Forward, "compute", "", 0, 20_000),
			at(observe.Forward, "compute", "block1", 0, 10_000),
			at(observe.Backward, "compute", "block2", 20_000, 40_000),
			at(observe.Backward, "", "block1", 40_000, 70_000),
			at(observe.Bucket, "buckets", "bucket 0", 40_000, 60_000),
			at(observe.Bucket, "buckets", "bucket 1 \"last\"\n", 50_000, 75_123),
			at(observe.Optimizer, "compute", "update", 75_123, 80_000),
		}}
	}
	second := rank(1, -250)
	second.Lost = 7
	return []RankSpans{second, rank(0, 0)}
}

func TestGoldenTrace(t *testing.T) {
	var got bytes.Buffer
	require.NoError(t, Write(&got, scripted()))
	const path = "testdata/scripted.json"
	if *rewrite {
		require.NoError(t, os.WriteFile(path, got.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got.String())

	// The order in which ranks and spans come does not matter.
	ranks := scripted()
	ranks[0], ranks[1] = ranks[1], ranks[0]
	for _, r := range ranks {
		for i, j := 0, len(r.Spans)-1; i < j; i, j = i+1, j-1 {
			r.Spans[i], r.Spans[j] = r.Spans[j], r.Spans[i]
		}
	}
	var again bytes.Buffer
	require.NoError(t, Write(&again, ranks))
	require.Equal(t, got.String(), again.String())
}

type event struct {
	Phase string `json:"ph"`
	Pid   int
	Tid   int
	Ts    float64
	Dur   float64
	Cat   string
	Name  string
	Args  map[string]any
}

func parse(t *testing.T, b []byte) []event {
	t.Helper()
	var file struct{ TraceEvents []event }
	require.NoError(t, json.Unmarshal(b, &file))
	return file.TraceEvents
}

// Viewers draw spans of one thread as a stack: two of them are apart or nested.
func TestSpansOfALaneNest(t *testing.T) {
	var got bytes.Buffer
	require.NoError(t, Write(&got, scripted()))
	events := parse(t, got.Bytes())
	spans := 0
	for i, a := range events {
		if a.Phase != "X" {
			continue
		}
		spans++
		for _, b := range events[i+1:] {
			if b.Phase != "X" || a.Pid != b.Pid || a.Tid != b.Tid {
				continue
			}
			require.LessOrEqual(t, a.Ts, b.Ts)
			apart := a.Ts+a.Dur <= b.Ts+1e-9 // decimals read as binary fractions
			within := b.Ts+b.Dur <= a.Ts+a.Dur+1e-9
			require.True(t, apart || within, "%+v %+v", a, b)
		}
	}
	require.Equal(t, 20, spans)
}

func TestCallRunsUnderBackward(t *testing.T) {
	var got bytes.Buffer
	require.NoError(t, Write(&got, scripted()))
	var call, backward event
	for _, e := range parse(t, got.Bytes()) {
		switch {
		case e.Pid == 1 && e.Cat == "call":
			call = e
		case e.Pid == 1 && e.Cat == "backward" && e.Name == "block1":
			backward = e
		}
	}
	require.Greater(t, call.Ts, backward.Ts)
	require.Less(t, call.Ts+call.Dur, backward.Ts+backward.Dur)
	require.Equal(t, map[string]any{"step": 3.0, "micro": 1.0, "bytes_sent": 4096.0, "bytes_received": 2048.0}, call.Args)
	require.NotEqual(t, call.Tid, backward.Tid)
}

func TestTraceOfNothing(t *testing.T) {
	for _, ranks := range [][]RankSpans{nil, {{Rank: 4}}} {
		var got bytes.Buffer
		require.NoError(t, Write(&got, ranks))
		require.Len(t, parse(t, got.Bytes()), 2*len(ranks))
	}
}

func TestMicroseconds(t *testing.T) {
	for ns, want := range map[int64]string{0: "0.000", 1: "0.001", 1234567: "1234.567", -1500: "-1.500",
		-1 << 63: "-9223372036854775.808"} {
		require.Equal(t, want, string(appendMicroseconds(nil, ns)))
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteReportsFailure(t *testing.T) {
	require.EqualError(t, Write(failing{}, scripted()), "disk full")
}

func BenchmarkWrite(b *testing.B) {
	ranks := scripted()
	for i := range ranks {
		for range 1000 {
			ranks[i].Spans = append(ranks[i].Spans, ranks[i].Spans[:10]...)
		}
	}
	for b.Loop() {
		_ = Write(io.Discard, ranks)
	}
	b.ReportMetric(float64(b.N*2*len(ranks[0].Spans))/b.Elapsed().Seconds(), "spans/s")
}

func ExampleWrite() {
	recorder := observe.NewRecorder(16)
	recorder.Record(observe.Span{Kind: observe.Forward, Lane: "compute", Name: "block", Start: 1000, End: 3500, Step: 1})
	var spans []observe.Span
	recorder.Drain(func(s observe.Span) { spans = append(spans, s) })
	if err := Write(os.Stdout, []RankSpans{{Rank: 0, Spans: spans}}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"displayTimeUnit":"ms","otherData":{"start_unix_ns":"1000"},"traceEvents":[
	// {"ph":"M","pid":0,"name":"process_name","args":{"name":"rank 0"}},
	// {"ph":"M","pid":0,"name":"process_sort_index","args":{"sort_index":0}},
	// {"ph":"M","pid":0,"tid":0,"name":"thread_name","args":{"name":"compute"}},
	// {"ph":"M","pid":0,"tid":0,"name":"thread_sort_index","args":{"sort_index":0}},
	// {"ph":"X","pid":0,"tid":0,"ts":0.000,"dur":2.500,"cat":"forward","name":"block","args":{"step":1,"micro":0}}
	// ]}
}
