package tcp

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
)

// traffic has every rank send count messages of awkward lengths to every other
// and checks all that arrives.
func traffic(t *testing.T, ranks []*Transport, count int) {
	t.Helper()
	sizes := []int{0, 8, 100, 5000, eagerMax, eagerMax + 1, 200_000, 1 << 20, 1<<20 + 4096}
	var all errgroup.Group
	for from := range ranks {
		for to := range ranks {
			if from == to {
				continue
			}
			for lane := range 2 {
				tag := collective.Tag(lane)
				random := rand.New(rand.NewPCG(uint64(from*10+to), uint64(lane)))
				lengths := make([]int, count)
				for i := range lengths {
					lengths[i] = sizes[random.IntN(4)]
					if i%20 == 0 {
						lengths[i] = sizes[random.IntN(len(sizes))]
					}
				}
				all.Go(func() error {
					for i, n := range lengths {
						if err := ranks[from].Send(t.Context(), to, tag, pattern(n, i+from)); err != nil {
							return err
						}
					}
					return nil
				})
				all.Go(func() error {
					for i, n := range lengths {
						if err := expectMessage(t.Context(), ranks[to], from, tag, pattern(n, i+from), i%3 == 0); err != nil {
							return err
						}
					}
					return nil
				})
			}
		}
	}
	require.NoError(t, all.Wait())
}

// expectMessage receives one message, in place where asked and offered.
func expectMessage(ctx context.Context, r *Transport, from int, tag collective.Tag, want []byte, inPlace bool) error {
	got := make([]byte, 0, len(want))
	offered := false
	var err error
	if inPlace {
		offered, err = r.RecvInPlace(ctx, from, tag, func(b []byte) error {
			got = append(got, b...)
			return nil
		})
	}
	if !offered && err == nil {
		got = got[:len(want)]
		err = r.Recv(ctx, from, tag, got)
	}
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("%d bytes from rank %d to %d with tag %d are wrong", len(want), from, r.rank, tag)
	}
	return err
}
