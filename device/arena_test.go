package device

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// heap is the least Device that an arena needs.
type heap struct {
	Device
	calls, out int
}

func (h *heap) Region(least int) (Buf, error) {
	h.calls++
	h.out++
	return HostAlloc(U8, least)
}

func (h *heap) Release(Buf) { h.out-- }

func TestArenaReusesMemory(t *testing.T) {
	h := &heap{}
	a := NewArena(h)
	for _, n := range []int{100, 100_000} { // from a slab, from a gap
		first := a.Get(F32, n)
		second := a.Get(F32, n)
		require.NotSame(t, &first.F32()[0], &second.F32()[0])
		a.Put(first)
		require.Same(t, &first.F32()[0], &a.Get(F32, n).F32()[0])
		a.Put(second)
		require.Equal(t, second.address(), a.Get(I32, n).address(), "whatever its type")
	}
}

// Free neighbours become one, so that buffers of another size fit.
func TestArenaJoinsGaps(t *testing.T) {
	h := &heap{}
	a := NewArena(h)
	all := a.Get(U8, 1<<20)
	a.Put(all)
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}, {0, 2, 1, 3}} {
		var parts []Buf
		for range 4 {
			parts = append(parts, a.Get(U8, 1<<18))
		}
		for _, i := range order {
			a.Put(parts[i])
		}
		require.Equal(t, []gap{{size: 1 << 20}}, a.gaps)
		require.Equal(t, all.address(), a.Get(U8, 1<<20).address())
		a.Put(all)
	}
	require.Equal(t, 1, h.calls)
	require.Equal(t, 1<<20, a.Footprint())
}

func TestArenaTakesTheSmallestGap(t *testing.T) {
	a := NewArena(&heap{})
	a.Put(a.Get(U8, 2<<20))
	large := a.Get(U8, 400<<10)
	between := a.Get(U8, 64<<10)
	small := a.Get(U8, 100<<10)
	a.Get(U8, 64<<10)
	a.Put(large)
	a.Put(small)
	require.Equal(t, small.address(), a.Get(U8, 90<<10).address())
	require.Equal(t, large.address(), a.Get(U8, 110<<10).address())
	a.Put(between)
}

// A random history: buffers that are out share no byte, and a history that has
// run once asks the device for nothing when it runs again.
func TestArenaHistories(t *testing.T) {
	seed := rand.Uint64()
	h := &heap{}
	a := NewArena(h)
	history := func() {
		r := rand.New(rand.NewPCG(seed, 1))
		var out []Buf
		for i := range 400 {
			if len(out) > 0 && r.IntN(5) < 2 {
				k := r.IntN(len(out))
				b := out[k].Bytes()
				require.Equalf(t, len(b), bytes.Count(b, b[:1]), "seed %d", seed)
				a.Put(out[k])
				out = append(out[:k], out[k+1:]...)
				continue
			}
			b := a.Get([]Type{F32, F64, U8}[r.IntN(3)], 1+r.IntN(1<<r.IntN(18)))
			require.Zero(t, b.address()%Align)
			for k := range b.Bytes() {
				b.Bytes()[k] = byte(i)
			}
			out = append(out, b)
		}
		for _, b := range out {
			a.Put(b)
		}
	}
	history()
	calls, footprint := h.calls, a.Footprint()
	history()
	history()
	require.Equalf(t, calls, h.calls, "seed %d", seed)
	require.Equalf(t, footprint, a.Footprint(), "seed %d", seed)
	require.Zero(t, a.held)
}

func TestArenaPeak(t *testing.T) {
	a := NewArena(&heap{})
	x := a.Get(F32, 100)
	y := a.Get(F64, 100)
	a.Put(x)
	a.Put(y)
	a.Get(F32, 100)
	require.Equal(t, 1200, a.Peak())
	a.Put(Buf{})
	a.Put(a.Get(F32, 0))
}

func TestArenaSteadyStateAllocatesNothing(t *testing.T) {
	a := NewArena(&heap{})
	step := func() {
		x, y, z := a.Get(F32, 64), a.Get(F32, 64), a.Get(F32, 1<<16)
		a.Put(y)
		a.Put(z)
		a.Put(x)
	}
	step()
	require.Zero(t, testing.AllocsPerRun(100, step))
}

func TestArenaMisuse(t *testing.T) {
	a := NewArena(&heap{})
	require.Panics(t, func() { a.Get(F32, -1) })
	require.Panics(t, func() { a.Get(F64, 1<<61) })
	b := a.Get(F32, 1<<16)
	require.PanicsWithValue(t, "device: a buffer was given to an arena that did not make it", func() { a.Put(FromF32(make([]float32, 1<<16))) })
	a.Put(b)
	require.PanicsWithValue(t, "device: a buffer was given back twice", func() { a.Put(b) })
}

func TestArenaExpects(t *testing.T) {
	h := &heap{}
	a := NewArena(h)
	a.Expect(0)
	require.Zero(t, h.calls)
	a.Expect(1 << 20)
	a.Expect(2 << 20)
	require.Equal(t, 1, h.calls)
	b := a.Get(U8, 1<<20)
	require.Equal(t, 1, h.calls)
	require.Equal(t, 1<<20, a.Footprint())
	a.Put(b)
}

func TestArenaClose(t *testing.T) {
	h := &heap{}
	a := NewArena(h)
	a.Get(F32, 1<<16)
	a.Get(F32, 1<<20)
	a.Close()
	require.Zero(t, h.out)
	require.Equal(t, 4<<20+4<<16, a.Peak())
	a.Put(a.Get(F32, 100))
}

// What is asked for late has no goroutine that nobody waits for.
func TestNothingIsFilledAfterClose(t *testing.T) {
	var r HostRegions
	r.Close()
	for range 2 {
		_, err := r.Alloc(F32, worthFilling)
		require.NoError(t, err)
		b, err := r.Region(worthFilling)
		require.NoError(t, err)
		require.False(t, r.filler.runs)
		require.Empty(t, r.filler.queue)
		r.Release(b)
		_, err = r.Region(worthFilling)
		require.NoError(t, err)
		r.Close()
		require.Zero(t, r.Mapped())
	}
}

func TestRegions(t *testing.T) {
	var r HostRegions
	first, err := r.Region(5 << 20)
	require.NoError(t, err)
	require.GreaterOrEqual(t, first.Len, 5<<20)
	require.Zero(t, first.address()%Align)
	second, err := r.Region(1)
	require.NoError(t, err)
	for _, b := range []Buf{first, second} { // all of it can be used
		b.Bytes()[0], b.Bytes()[b.Len-1] = 1, 2
	}
	require.GreaterOrEqual(t, r.Mapped(), first.Len+second.Len)
	r.Release(second)
	require.PanicsWithValue(t, "device: a region was released that is not out", func() { r.Release(second) })
	r.Close()
	require.Zero(t, r.Mapped())
	_, err = r.Region(-1)
	require.Error(t, err)
	_, err = r.Region(math.MaxInt)
	require.Error(t, err)
	r.Close()
}
