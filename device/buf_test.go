package device

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestTypeNamesRoundTrip(t *testing.T) {
	for ty := F32; ty <= U8; ty++ {
		got, err := ParseType(ty.String())
		require.NoError(t, err)
		require.Equal(t, ty, got)
	}
	_, err := ParseType("f8")
	require.ErrorContains(t, err, `"f8"`)
	require.Equal(t, "type(99)", Type(99).String())
}

func TestBufAliasesItsSlice(t *testing.T) {
	s := []float32{1, 2, 3, 4}
	b := FromF32(s)
	require.Equal(t, 16, b.Size())
	part := b.Slice(1, 3)
	part.F32()[0] = 9
	require.Equal(t, float32(9), s[1])
	require.Equal(t, 2, cap(part.Bytes())/4, "a slice cannot grow over its neighbours")
	require.Len(t, FromF64(make([]float64, 3)).F64(), 3)
	require.Len(t, FromI32(make([]int32, 3)).I32(), 3)
	require.Len(t, FromI64(make([]int64, 3)).I64(), 3)
	require.Equal(t, []byte{7}, FromU8([]byte{7}).Bytes())
	require.Len(t, FromBytes(I8, make([]byte, 3)).I8(), 3)
	require.Len(t, FromBytes(BF16, make([]byte, 6)).U16(), 3)
}

func TestBufReinterpreted(t *testing.T) {
	b := FromF64([]float64{0, 0})
	require.Equal(t, 4, b.As(F32).Len)
	require.Equal(t, 8, b.As(F16).Len)
	require.Same(t, &b.F64()[0], (*float64)(unsafe.Pointer(&b.As(F32).F32()[0])))
}

func TestBufMisuse(t *testing.T) {
	b := FromF32([]float32{1, 2})
	require.Panics(t, func() { b.F64() })
	require.Panics(t, func() { b.U16() })
	require.Panics(t, func() { b.Slice(1, 3) })
	require.Panics(t, func() { b.Slice(-1, 1) })
	require.Panics(t, func() { b.Slice(2, 1) })
	require.Panics(t, func() { FromBytes(F32, make([]byte, 5)) })
}

func TestZeroBuf(t *testing.T) {
	var b Buf
	require.True(t, b.IsZero())
	require.Empty(t, b.F32())
	require.Empty(t, b.F64())
	require.Zero(t, b.Slice(0, 0).Len)
	require.True(t, FromF32(nil).IsZero())
}

func TestHandleMovesWithTheSlice(t *testing.T) {
	b := Buf{Type: F64, Len: 10, Handle: 0x1000}
	require.Equal(t, uintptr(0x1018), b.Slice(3, 5).Handle)
	require.Nil(t, b.Slice(3, 5).Bytes())
}

// Large memory starts on a huge page, so that no part of one is left over.
func TestLargeHostAllocStartsOnAHugePage(t *testing.T) {
	for _, n := range []int{hugePage, 2 * hugePage, 2*hugePage + 4, 5*hugePage/2 + 8, 7*hugePage - 4} {
		b, err := HostAlloc(U8, n)
		require.NoError(t, err)
		require.Equal(t, n, b.Len)
		require.Zero(t, b.address()%hugePage)
		require.Equal(t, n, cap(b.mem))
		b.Bytes()[n-1] = 1
	}
}

func TestHostAllocIsAlignedAndZero(t *testing.T) {
	for _, n := range []int{0, 1, 3, 16, 1000} {
		b, err := HostAlloc(F32, n)
		require.NoError(t, err)
		require.Equal(t, n, b.Len)
		for _, v := range b.F32() {
			require.Zero(t, v)
		}
		if n > 0 {
			require.Zero(t, uintptr(unsafe.Pointer(&b.F32()[0]))%Align)
		}
	}
	_, err := HostAlloc(F64, -1)
	require.Error(t, err)
	_, err = HostAlloc(F64, 1<<61)
	require.Error(t, err)
}

func TestRequireNamesTheArgument(t *testing.T) {
	require.PanicsWithError(t, "device: MatMul: a is 3 x f32, needs 4 x f32", func() {
		Require("MatMul", "a", FromF32(make([]float32, 3)), F32, 4)
	})
	require.PanicsWithError(t, "device: Add: b is 2 x i32, needs 2 x f32", func() {
		RequireSame("Add", "b", FromI32(make([]int32, 2)), FromF32(make([]float32, 2)))
	})
}
