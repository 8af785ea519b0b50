package tcp

import (
	"context"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// echo has rank 1 send back what it gets.
func echo(ctx context.Context, r *Transport, n int) func() {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, n)
		for r.Recv(ctx, 0, 1, b) == nil && r.Send(ctx, 0, 1, b) == nil {
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, n := range []int{1 << 10, eagerMax, 1 << 20} {
		ranks := world(t, 2)
		ctx, cancel := context.WithCancel(t.Context()) // as calls have one that can end
		stop := echo(ctx, ranks[1], n)
		b := make([]byte, n)
		// The bound is below one object per exchange of two messages: the pools
		// grow now and then when the two ranks get out of step.
		require.Less(t, testing.AllocsPerRun(300, func() {
			require.NoError(t, ranks[0].Send(ctx, 1, 1, b))
			require.NoError(t, ranks[0].Recv(ctx, 1, 1, b))
		}), 1.0, "%d bytes", n)
		stop()
		cancel()
		closeAll(t, ranks)
	}
}

func BenchmarkPingPong(b *testing.B) {
	for _, c := range []struct {
		name string
		size int
	}{{"1KiB", 1 << 10}, {"64KiB", 64 << 10}, {"1MiB", 1 << 20}} {
		b.Run(c.name, func(b *testing.B) {
			ranks := world(b, 2)
			stop := echo(b.Context(), ranks[1], c.size)
			buf := make([]byte, c.size)
			b.SetBytes(int64(2 * c.size))
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, ranks[0].Send(b.Context(), 1, 1, buf))
				require.NoError(b, ranks[0].Recv(b.Context(), 1, 1, buf))
			}
			stop()
			closeAll(b, ranks)
		})
	}
}

// BenchmarkBothWays: two ranks send each other 64 MiB at the same time; MB/s
// counts both directions.
func BenchmarkBothWays(b *testing.B) {
	const size = 64 << 20
	ranks := world(b, 2)
	in, out := make([]byte, size), make([]byte, size)
	theirIn, theirOut := make([]byte, size), make([]byte, size)
	for i := 0; i < size; i += 4096 {
		in[i], out[i], theirIn[i], theirOut[i] = 1, 1, 1, 1
	}
	b.SetBytes(2 * size)
	b.ReportAllocs()
	done := make(chan error, 3)
	for b.Loop() {
		go func() { done <- ranks[0].Send(b.Context(), 1, 1, out) }()
		go func() { done <- ranks[1].Send(b.Context(), 0, 1, theirOut) }()
		go func() { done <- ranks[1].Recv(b.Context(), 0, 1, theirIn) }()
		require.NoError(b, ranks[0].Recv(b.Context(), 1, 1, in))
		for range 3 {
			require.NoError(b, <-done)
		}
	}
	closeAll(b, ranks)
}

// BenchmarkBareSockets is BothWays without this package: the limit.
func BenchmarkBareSockets(b *testing.B) {
	const size, piece = 64 << 20, 1 << 20
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	defer listener.Close()
	dialed, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(b, err)
	accepted, err := listener.Accept()
	require.NoError(b, err)
	defer dialed.Close()
	defer accepted.Close()
	buffers := [4][]byte{make([]byte, size), make([]byte, size), make([]byte, size), make([]byte, size)}
	b.SetBytes(2 * size)
	for b.Loop() {
		var all errgroup.Group
		for end, conn := range []net.Conn{dialed, accepted} {
			all.Go(func() error {
				for at := 0; at < size; at += piece {
					if _, err := conn.Write(buffers[end][at : at+piece]); err != nil {
						return err
					}
				}
				return nil
			})
			all.Go(func() error {
				_, err := io.ReadFull(conn, buffers[2+end])
				return err
			})
		}
		require.NoError(b, all.Wait())
	}
}
