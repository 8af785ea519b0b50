package trace

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/gradfusion/gradfusion/observe"
	"github.com/stretchr/testify/require"
)

func TestCodecRoundTrip(t *testing.T) {
	for _, r := range append(scripted(), RankSpans{Spans: []observe.Span{}}, RankSpans{Rank: 9, Shift: -1 << 63, Lost: 3, Spans: []observe.Span{
		{Kind: observe.Checkpoint, Start: 1<<63 - 1, End: -1 << 63, Step: -1, Micro: -7, Bytes: 1 << 62, BytesIn: -1},
	}}) {
		got, err := Decode(Encode([]byte{}, r))
		require.NoError(t, err)
		require.Equal(t, r, got)
	}
}

func TestCodecIsCompact(t *testing.T) {
	r := scripted()[0]
	for range 100 {
		r.Spans = append(r.Spans, r.Spans[:10]...)
	}
	require.Less(t, len(Encode(nil, r)), 20*len(r.Spans))
}

func TestDecodeRefusesDamage(t *testing.T) {
	good := Encode(nil, scripted()[0])
	for n := range good {
		_, err := Decode(good[:n])
		require.ErrorContains(t, err, "trace: coded spans", "cut after %d bytes", n)
	}
	_, err := Decode(append(bytes.Clone(good), 0))
	require.ErrorContains(t, err, "1 bytes after the last span")
	_, err = Decode([]byte(magic + "\x00\x00\x00\xff\xff\xff\xff\x0f"))
	require.ErrorContains(t, err, "strings do not fit into what follows")
	_, err = Decode([]byte(magic + "\x00\x00\x00\x00\xff\xff\xff\xff\x0f"))
	require.ErrorContains(t, err, "spans do not fit into what follows")
	_, err = Decode([]byte(magic + "\x00\x00\x00\x01\x00\x01\x63" + "\x00\x00\x00\x00\x00\x00\x00\x00"))
	require.ErrorContains(t, err, "unknown kind")
	_, err = Decode([]byte(magic + "\x00\x00\x00\x01\x00\x01\x00" + "\x00\x01\x00\x00\x00\x00\x00\x00"))
	require.ErrorContains(t, err, "a string that is not there")
	_, err = Decode([]byte("hello, hello"))
	require.ErrorContains(t, err, "no spans start here")

	random := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		bad := bytes.Clone(good)
		bad[random.IntN(len(bad))] ^= 1 << random.IntN(8)
		_, _ = Decode(bad) // may succeed, must not panic
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Encode(nil, scripted()[0]))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Decode(b)
		if err != nil {
			return
		}
		again, err := Decode(Encode(nil, r))
		require.NoError(t, err)
		require.Equal(t, r, again)
		require.NoError(t, Write(&bytes.Buffer{}, []RankSpans{r}))
	})
}
