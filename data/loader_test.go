package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is a Filler under a test's control: it may fail at one sample and
// it may wait for a gate.
type scripted struct {
	failAt int
	gate   chan struct{}
	fills  atomic.Int32
}

var errScripted = errors.New("scripted failure")

func (s *scripted) Sizes() Sizes { return Sizes{X: 2, Y: 1} }

func (s *scripted) Fill(to Samples, indices []int, epoch int) error {
	s.fills.Add(1)
	if s.gate != nil {
		<-s.gate
	}
	for i, index := range indices {
		if index == s.failAt {
			return errScripted
		}
		to.X[2*i], to.X[2*i+1], to.Y[i] = float32(index), float32(epoch), int32(index)
	}
	return nil
}

func TestLoaderDeliversInOrder(t *testing.T) {
	set := countingImages(50, 1, 4, 4)
	batcher, err := NewBatcher(set, set.Normalization(), Augment{Flip: true, Pad: 1}, 9)
	require.NoError(t, err)
	s, err := NewSampler(set.Len(), 12, 9)
	require.NoError(t, err)
	for _, c := range []LoaderConfig{{Micro: 5}, {Micro: 5, Workers: 4}, {Micro: 5, Workers: 3, Ahead: 1, Hold: 3}} {
		l, err := NewLoader(batcher, s.Parts(3, 30, 5, 2, 0), c)
		require.NoError(t, err)
		for p := range s.Parts(3, 30, 5, 2, 0) {
			b, err := l.Next(context.Background())
			require.NoError(t, err)
			require.Equal(t, p, b.Part)
			x, y := make([]float32, len(p.Indices)*16), make([]int32, len(p.Indices))
			require.NoError(t, batcher.Fill(Samples{X: x, Y: y}, p.Indices, p.Epoch))
			require.Equal(t, x, b.X)
			require.Equal(t, y, b.Y)
			l.Release(b)
		}
		for range 2 {
			_, err = l.Next(context.Background())
			require.Equal(t, io.EOF, err)
		}
		require.NoError(t, l.Close())
		require.NoError(t, l.Close())
	}
}

func TestLoaderWithNothingToDo(t *testing.T) {
	l, err := NewLoader(&scripted{}, EvalParts(0, 4, 1, 0), LoaderConfig{Micro: 4})
	require.NoError(t, err)
	_, err = l.Next(context.Background())
	require.Equal(t, io.EOF, err)
	require.NoError(t, l.Close())
}

func TestLoaderHoldsSeveral(t *testing.T) {
	l, err := NewLoader(&scripted{failAt: -1}, EvalParts(40, 4, 1, 0), LoaderConfig{Micro: 4, Hold: 3})
	require.NoError(t, err)
	defer l.Close()
	var held []*Batch
	for range 3 {
		b, err := l.Next(context.Background())
		require.NoError(t, err)
		held = append(held, b)
	}
	_, err = l.Next(context.Background())
	require.ErrorContains(t, err, "3 micro-batches are held")
	l.Release(held[1])
	require.Panics(t, func() { l.Release(held[1]) })
	b, err := l.Next(context.Background())
	require.NoError(t, err)
	require.Equal(t, []int32{12, 13, 14, 15}, b.Y)
	require.Equal(t, []int32{0, 1, 2, 3}, held[0].Y, "held batches keep their content")
	require.Equal(t, []int32{8, 9, 10, 11}, held[2].Y)
}

func TestLoaderPassesErrorsOnInOrder(t *testing.T) {
	l, err := NewLoader(&scripted{failAt: 9}, EvalParts(40, 4, 1, 0), LoaderConfig{Micro: 4, Workers: 3})
	require.NoError(t, err)
	defer l.Close()
	for range 2 {
		b, err := l.Next(context.Background())
		require.NoError(t, err)
		l.Release(b)
	}
	for range 3 {
		_, err = l.Next(context.Background())
		require.ErrorIs(t, err, errScripted)
		require.ErrorContains(t, err, "micro-batch 2 of step 0")
	}
}

func TestLoaderRefusesLargerParts(t *testing.T) {
	l, err := NewLoader(&scripted{}, EvalParts(40, 5, 1, 0), LoaderConfig{Micro: 4})
	require.NoError(t, err)
	defer l.Close()
	_, err = l.Next(context.Background())
	require.ErrorContains(t, err, "has 5 samples, the loader was made for 4")
	_, err = NewLoader(&scripted{}, EvalParts(40, 5, 1, 0), LoaderConfig{})
	require.ErrorContains(t, err, "Micro must be at least 1")
}

func TestLoaderSurvivesCancelledNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		l, err := NewLoader(&scripted{failAt: -1, gate: gate}, EvalParts(8, 4, 1, 0), LoaderConfig{Micro: 4})
		require.NoError(t, err)
		ctx, cancel := context.WithCancelCause(context.Background())
		got := make(chan error)
		go func() {
			_, err := l.Next(ctx)
			got <- err
		}()
		synctest.Wait() // Next waits for the fill, the fill for the gate
		reason := errors.New("enough")
		cancel(reason)
		require.ErrorIs(t, <-got, reason)
		close(gate)
		for _, first := range []int32{0, 4} {
			b, err := l.Next(context.Background())
			require.NoError(t, err)
			require.Equal(t, first, b.Y[0], "nothing is lost")
			l.Release(b)
		}
		require.NoError(t, l.Close())
	})
}

func TestLoaderCloseWakesNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		l, err := NewLoader(&scripted{failAt: -1, gate: gate}, EvalParts(80, 4, 1, 0), LoaderConfig{Micro: 4, Workers: 2})
		require.NoError(t, err)
		got := make(chan error)
		go func() {
			_, err := l.Next(context.Background())
			got <- err
		}()
		synctest.Wait()
		closed := make(chan struct{})
		go func() {
			l.Close()
			close(closed)
		}()
		require.ErrorIs(t, <-got, ErrClosed)
		close(gate) // a fill that runs is waited for
		<-closed
		_, err = l.Next(context.Background())
		require.ErrorIs(t, err, ErrClosed)
	})
}

func TestLoaderPreparesAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		filler := &scripted{failAt: -1}
		l, err := NewLoader(filler, EvalParts(400, 4, 1, 0), LoaderConfig{Micro: 4, Workers: 2, Ahead: 5})
		require.NoError(t, err)
		synctest.Wait()
		require.EqualValues(t, 6, filler.fills.Load(), "Ahead and Hold, and no more")
		require.NoError(t, l.Close())
	})
}

func TestLoaderDoesNotAllocate(t *testing.T) {
	set := countingImages(500, 1, 8, 8)
	batcher, err := NewBatcher(set, set.Normalization(), Augment{Flip: true, Pad: 2}, 1)
	require.NoError(t, err)
	s, err := NewSampler(set.Len(), 32, 1)
	require.NoError(t, err)
	l, err := NewLoader(batcher, s.Parts(0, 1<<30, 8, 1, 0), LoaderConfig{Micro: 8, Workers: 2})
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	take := func() {
		b, err := l.Next(ctx)
		if err != nil {
			panic(err)
		}
		l.Release(b)
	}
	take()
	// The runtime may grow its own lists of waiters now and then.
	require.Less(t, testing.AllocsPerRun(500, take), 0.5)
}

func ExampleLoader() {
	source, err := Open(Config{Name: "digits"})
	if err != nil {
		panic(err)
	}
	sampler, err := NewSampler(source.Train.Len(), 64, 1)
	if err != nil {
		panic(err)
	}
	batcher, err := NewBatcher(source.Train, source.Normalization, Augment{}, 1)
	if err != nil {
		panic(err)
	}
	// Rank 1 of 2 trains one epoch in micro-batches of 16.
	parts := sampler.Parts(0, sampler.StepsPerEpoch(), 16, 2, 1)
	loader, err := NewLoader(batcher, parts, LoaderConfig{Micro: 16})
	if err != nil {
		panic(err)
	}
	defer loader.Close()
	samples, steps := 0, []int{}
	for {
		batch, err := loader.Next(context.Background())
		if err == io.EOF {
			break
		}
		if err != nil {
			panic(err)
		}
		samples += len(batch.Y) // batch.X holds them, N x 1 x 8 x 8
		if !slices.Contains(steps, batch.Step) {
			steps = append(steps, batch.Step)
		}
		loader.Release(batch)
	}
	fmt.Println(samples, "samples in", len(steps), "steps, of", source.Train.Len())
	// Output: 718 samples in 23 steps, of 1438
}
