package store

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFrameRoundTrip(t *testing.T) {
	for _, m := range []message{
		{op: opSet, id: 1, parts: [][]byte{[]byte("key"), {}}},
		{op: opLeave, parts: [][]byte{}},
		{op: opDone, id: 1<<64 - 1, parts: [][]byte{{0, 1, 2}, bytes.Repeat([]byte{7}, 100_000)}},
	} {
		b, err := m.append(nil)
		require.NoError(t, err)
		got, err := readMessage(bytes.NewReader(b))
		require.NoError(t, err)
		require.Equal(t, m, got)
	}
}

func TestFrameLimits(t *testing.T) {
	_, err := message{op: opSet, parts: [][]byte{make([]byte, MaxFrame)}}.append(nil)
	require.ErrorIs(t, err, errTooLarge)
	_, err = readMessage(bytes.NewReader(binary.LittleEndian.AppendUint32(nil, MaxFrame+1)))
	require.ErrorIs(t, err, errTooLarge)
	_, err = readMessage(bytes.NewReader([]byte("GET / HTTP/1.1\r\n")))
	require.ErrorIs(t, err, errTooLarge)
}

func FuzzParse(f *testing.F) {
	for _, m := range []message{
		{op: opSet, id: 1, parts: [][]byte{[]byte("key"), []byte("value")}},
		{op: opCancel, id: 9},
	} {
		b, err := m.append(nil)
		require.NoError(f, err)
		f.Add(b[4:])
	}
	f.Add([]byte{})
	f.Add(append([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0}, 0xff, 0xff, 0xff, 0xff))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parse(b)
		if err != nil {
			return
		}
		again, err := m.append(nil)
		require.NoError(t, err)
		require.Equal(t, b, again[4:], "what parses is what would be written")
	})
}
