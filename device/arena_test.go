package device

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// heap is the least Device that an arena needs.
type heap struct {
	Device
	calls int
}

func (h *heap) Alloc(t Type, n int) (Buf, error) {
	h.calls++
	return HostAlloc(t, n)
}

func TestArenaReusesByTypeAndLength(t *testing.T) {
	h := &heap{}
	a := NewArena(h)
	first := a.Get(F32, 100)
	second := a.Get(F32, 100)
	require.NotSame(t, &first.F32()[0], &second.F32()[0])
	a.Put(first)
	require.Same(t, &first.F32()[0], &a.Get(F32, 100).F32()[0])
	a.Put(second)
	a.Get(F32, 99)
	a.Get(I32, 100)
	require.Equal(t, 4, h.calls)
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
		x, y := a.Get(F32, 64), a.Get(F32, 64)
		a.Put(y)
		a.Put(x)
	}
	step()
	require.Zero(t, testing.AllocsPerRun(100, step))
}

func TestArenaRefusesTheImpossible(t *testing.T) {
	require.Panics(t, func() { NewArena(&heap{}).Get(F32, -1) })
}
