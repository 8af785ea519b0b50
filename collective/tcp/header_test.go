package tcp

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzHeader(f *testing.F) {
	for k := kindEager; k < kindEnd; k++ {
		var b [headerLen]byte
		header{kind: k, id: 1, tag: 2, size: 3}.put(b[:])
		f.Add(b[:])
	}
	f.Add([]byte("GET / HTTP/1.1\r\nHost: hos"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < headerLen {
			return
		}
		h, err := parseHeader(b)
		if err != nil {
			return
		}
		var again [headerLen]byte
		h.put(again[:])
		require.Equal(t, b[:headerLen-4], again[:headerLen-4], "what parses is what would be written, but for the checksum")
	})
}

// FuzzStream feeds a transport what a broken peer may send: it must neither
// crash nor hang, and must close.
func FuzzStream(f *testing.F) {
	frame := func(h header, payload string) []byte {
		b := make([]byte, headerLen)
		h.put(b)
		return append(b, payload...)
	}
	join := func(frames ...[]byte) (all []byte) {
		for _, b := range frames {
			all = append(all, b...)
		}
		return all
	}
	head, trailer := string(make([]byte, 64)), string(make([]byte, trailerLen))
	announce := frame(header{kind: kindAnnounce, tag: 1, size: 100_000}, head)
	f.Add(join(frame(header{kind: kindEager, tag: 1, size: 4}, "abcd"), frame(header{kind: kindGoodbye}, "")))
	f.Add(join(announce, frame(header{kind: kindData, size: 4}, "abcd"+trailer), frame(header{kind: kindAbort, size: 4}, "")))
	f.Add(join(announce, frame(header{kind: kindData, tag: 99_996, size: 4}, "abcd\x01"+trailer[1:]), frame(header{kind: kindVoid, size: 99_996}, "")))
	f.Add(join(announce, frame(header{kind: kindWithdraw}, "")))
	f.Add(join(frame(header{kind: kindAnnounce, tag: 9, size: 3}, "abc"), frame(header{kind: kindWithdraw}, ""), frame(header{kind: kindCredit, size: 9}, "")))
	f.Add(join(frame(header{kind: kindGrant, tag: 1}, ""), frame(header{kind: kindDone}, ""), frame(header{kind: kindAck, ack: 1}, "")))
	f.Add(frame(header{kind: kindGrant, id: 3, tag: 1}, ""))
	f.Add(frame(header{kind: kindData, id: 3, size: 1 << 20}, ""))
	f.Add(frame(header{kind: kindAck, ack: 1 << 31}, ""))
	f.Fuzz(func(t *testing.T, b []byte) {
		tr, peer := half(t)
		received := make(chan error, 1)
		go func() { received <- tr.Recv(t.Context(), 1, 1, make([]byte, 100_000)) }()
		sent := make(chan error, 1)
		go func() { sent <- tr.Send(t.Context(), 1, 1, make([]byte, 100_000)) }()
		go func() { _, _ = io.Copy(io.Discard, peer) }()
		_, _ = peer.Write(b)
		_ = peer.CloseWrite()
		<-received
		<-sent
		require.NoError(t, tr.Close())
		_ = peer.Close()
	})
}

// FuzzHello reads what a dialer that knows the token may say.
func FuzzHello(f *testing.F) {
	c := Config{Rank: 1, Size: 4, Namespace: "job", Sockets: 2}
	good := hello{wish: wishResume, index: 1, sockets: 2, from: 3, to: 1, size: 4, handled: 7, namespace: "job"}
	require.Empty(f, c.objection(good))
	f.Add(good.append(nil))
	f.Add([]byte("GET / HTTP/1.1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := readHello(bytes.NewReader(b))
		if err != nil {
			return
		}
		again := h.append(nil)
		require.Equal(t, b[:3], again[:3])
		require.Equal(t, b[4:len(again)], again[4:])
		if c.objection(h) == "" { // it is used as an index
			require.True(t, h.from != c.Rank && h.from >= 0 && h.from < c.Size && h.index < c.Sockets)
		}
	})
}
