package tcp

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// half is rank 0 of two whose rank 1 is the bare end of a socket.
func half(tb testing.TB) (*Transport, *net.TCPConn) {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	defer listener.Close()
	far, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(tb, err)
	near, err := listener.Accept()
	require.NoError(tb, err)
	c := Config{Size: 2}.filled()
	tr, err := newTransport(c, nil, [][]net.Conn{nil, {near}}, [][]int{{0, 1}})
	require.NoError(tb, err)
	return tr, far.(*net.TCPConn)
}

func put(t *testing.T, conn net.Conn, h header) {
	t.Helper()
	var b [headerLen]byte
	h.put(b[:])
	_, err := conn.Write(b[:])
	require.NoError(t, err)
}

func expect(t *testing.T, conn net.Conn) header {
	t.Helper()
	var b [headerLen]byte
	_, err := io.ReadFull(conn, b[:])
	require.NoError(t, err)
	h, err := parseHeader(b[:])
	require.NoError(t, err)
	h.ack = 0 // how far the other end happened to be
	return h
}

func skip(t *testing.T, conn net.Conn, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	_, err := io.ReadFull(conn, b)
	require.NoError(t, err)
	return b
}

// TestCancelSendToFrozenPeer: the call returns although the socket takes nothing,
// and the stream stays whole.
func TestCancelSendToFrozenPeer(t *testing.T) {
	tr, peer := half(t)
	defer peer.Close()
	ctx, cancel := context.WithCancel(t.Context())
	const size = 64 << 20 // more than the sockets' buffers hold
	b := make([]byte, size)
	for i := range b {
		b[i] = 1
	}
	sent := make(chan error, 1)
	go func() { sent <- tr.Send(ctx, 1, 5, b) }()
	h := expect(t, peer)
	require.Equal(t, header{kind: kindAnnounce, tag: 5, size: size}, h)
	skip(t, peer, 64)
	put(t, peer, header{kind: kindGrant, id: h.id, tag: 9})
	first := expect(t, peer) // streaming has begun; now the peer reads no more
	require.Equal(t, header{kind: kindData, id: 9, size: defaultSegment}, first)
	// A small message is queued although the socket is full.
	require.NoError(t, tr.Send(t.Context(), 1, 6, []byte("small")))
	cancel()
	require.ErrorIs(t, <-sent, context.Canceled)
	clear(b) // b is ours again

	h = first
	taken := uint64(0)
	spoiled := false
	for {
		require.False(t, spoiled && h.kind == kindData)
		if h.kind == kindData {
			taken += h.size
			require.Less(t, taken, uint64(size))
			payload := skip(t, peer, int(h.size))
			spoiled = skip(t, peer, trailerLen)[0] != 0
			require.True(t, spoiled || bytes.Count(payload, []byte{1}) == len(payload))
		} else if h.kind == kindVoid {
			taken += h.size
		} else if h.kind == kindEager {
			require.Equal(t, "small", string(skip(t, peer, int(h.size))))
		} else {
			break
		}
		h = expect(t, peer)
	}
	require.Equal(t, header{kind: kindAbort, id: 9, size: taken}, h)
	l := tr.links[1]
	require.Equal(t, &l.withdrawn, l.sends[0], "the message's number is in use until the peer answers")
	put(t, peer, header{kind: kindDone})
	until(t, l, func() bool { return l.sends[0] == nil })

	closed := make(chan error, 1)
	go func() { closed <- tr.Close() }()
	require.Equal(t, header{kind: kindGoodbye}, expect(t, peer))
	put(t, peer, header{kind: kindFarewell})
	require.NoError(t, <-closed)
}

// TestCancelReceiveFromFrozenPeer: the reader lets go of the buffer in the middle
// of a frame, and the rest of the message is dropped.
func TestCancelReceiveFromFrozenPeer(t *testing.T) {
	for _, c := range []struct {
		name string
		open header
		rest header // the second part of the message
	}{
		{"eager", header{kind: kindEager, tag: 5, size: eagerMax}, header{}},
		{"granted", header{kind: kindAnnounce, tag: 5, size: eagerMax + 100}, header{kind: kindData, size: 100}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr, peer := half(t)
			defer peer.Close()
			ctx, cancel := context.WithCancel(t.Context())
			received := make(chan error, 1)
			b := make([]byte, c.open.size)
			go func() { received <- tr.Recv(ctx, 1, 5, b) }()
			l := tr.links[1]
			until(t, l, func() bool { return l.queues[5] != nil })
			put(t, peer, c.open)
			if c.open.kind == kindAnnounce {
				_, err := peer.Write(make([]byte, 64))
				require.NoError(t, err)
				require.Equal(t, header{kind: kindGrant}, expect(t, peer))
				put(t, peer, header{kind: kindData, size: eagerMax})
			}
			_, err := peer.Write(make([]byte, 1000))
			require.NoError(t, err)
			until(t, l, func() bool { return l.sockets[0].in.into != nil })
			cancel()
			require.ErrorIs(t, <-received, context.Canceled)
			_, err = peer.Write(make([]byte, eagerMax-1000))
			require.NoError(t, err)
			if c.rest.kind != 0 {
				skip := make([]byte, trailerLen)
				_, err = peer.Write(skip)
				require.NoError(t, err)
				c.rest.tag = eagerMax // the offset
				put(t, peer, c.rest)
				_, err = peer.Write(append(make([]byte, c.rest.size), skip...))
				require.NoError(t, err)
				require.Equal(t, header{kind: kindDone}, expect(t, peer))
			}
			put(t, peer, header{kind: kindEager, tag: 5, size: 0})
			require.NoError(t, tr.Recv(t.Context(), 1, 5, nil))
			put(t, peer, header{kind: kindGoodbye})
			require.ErrorContains(t, tr.Recv(t.Context(), 1, 5, nil), "rank 1 has left")
			require.NoError(t, peer.Close())
			require.NoError(t, tr.Close())
			for i := range l.slots {
				require.False(t, l.slots[i].used)
			}
		})
	}
}

// until yields until a condition on the link holds.
func until(t *testing.T, l *link, condition func() bool) {
	t.Helper()
	for t.Context().Err() == nil {
		l.mu.Lock()
		ok := condition()
		l.mu.Unlock()
		if ok {
			return
		}
		yield()
	}
}

// TestWithdrawCrossesGrant: the receiver had granted what the sender took back,
// so it waits again, first in line.
func TestWithdrawCrossesGrant(t *testing.T) {
	tr, peer := half(t)
	defer peer.Close()
	b := make([]byte, 100_000)
	received := make(chan error, 1)
	go func() { received <- tr.Recv(t.Context(), 1, 5, b) }()
	put(t, peer, header{kind: kindAnnounce, id: 3, tag: 5, size: 100_000})
	_, err := peer.Write(make([]byte, 64))
	require.NoError(t, err)
	put(t, peer, header{kind: kindWithdraw, id: 3})
	if h := expect(t, peer); h.kind == kindGrant { // else nobody had received yet
		require.Equal(t, header{kind: kindGrant, id: 3}, h)
		require.Equal(t, header{kind: kindDiscard, id: 3}, expect(t, peer))
	} else {
		require.Equal(t, header{kind: kindDiscard, id: 3}, h)
	}
	put(t, peer, header{kind: kindAnnounce, id: 4, tag: 5, size: 100_000})
	_, err = peer.Write(make([]byte, 64))
	require.NoError(t, err)
	grant := expect(t, peer)
	require.Equal(t, kindGrant, grant.kind)
	put(t, peer, header{kind: kindAbort, id: uint32(grant.tag), tag: 4})
	require.ErrorContains(t, <-received, "rank 1 gave up sending")
	require.NoError(t, peer.Close())
	require.NoError(t, tr.Close())
}

func TestGarbageFromAPeer(t *testing.T) {
	tr, peer := half(t)
	defer peer.Close()
	_, err := peer.Write(make([]byte, 100))
	require.NoError(t, err)
	err = tr.Recv(t.Context(), 1, 5, nil)
	require.ErrorContains(t, err, "rank 0 lost rank 1: broken stream")
	require.Equal(t, err, tr.Send(t.Context(), 0, 5, nil), "all calls get the first error")
	require.NoError(t, tr.Close())
}
