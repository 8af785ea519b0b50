package wire

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The loops in vectors give the bits of the plain ones, wherever a vector starts.
func TestVectorsAreThePlainLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for range 60 {
		x := unusual(r, r.IntN(3000))
		for _, name := range Names()[1:] {
			sameFormat(t, name, x, r.Uint64())
		}
		sameSums(t, x, gradient(r, len(x)))
	}
}

// unusual returns n numbers, some of them special, that start at any address.
func unusual(r *rand.Rand, n int) []float32 {
	x := gradient(r, n+3)[3:]
	for i := range x {
		switch r.IntN(400) {
		case 0:
			x[i] = float32(math.NaN())
		case 1:
			x[i] = float32(math.Inf(-1))
		case 2:
			x[i] = 0
		case 3:
			x[i] *= 1e-38
		case 4:
			x[i] *= 1e30
		}
	}
	if r.IntN(4) == 0 {
		clear(x[:n/2])
	}
	return x
}

// withoutVectors is a format that uses the plain loops.
func withoutVectors(t *testing.T, name string) Format {
	f, err := New(Config{Name: name})
	require.NoError(t, err)
	switch f := f.(type) {
	case *Half:
		f.kernels = kernels{}
	case *Blocks:
		f.kernels = kernels{}
	case *TopK:
		f.kernels = kernels{}
	}
	return f
}

func sameFormat(t *testing.T, name string, x []float32, seed uint64) {
	t.Helper()
	n, plain := len(x), withoutVectors(t, name)
	fast, err := New(Config{Name: name})
	require.NoError(t, err)
	size := fast.EncodedLen(n)
	a, b := make([]byte, size+1)[1:], make([]byte, size)
	fast.Encode(a, x, seed)
	plain.Encode(b, x, seed)
	require.Equal(t, b, a, "%s of %d", name, n)
	keptA, keptB := slices.Clone(x), slices.Clone(x)
	fast.EncodeKeeping(a, keptA, seed)
	plain.EncodeKeeping(b, keptB, seed)
	require.Equal(t, b, a, "%s of %d", name, n)
	equalBits(t, keptB, keptA, "%s of %d keeps", name, n)
	y, z := slices.Clone(keptA), slices.Clone(keptA)
	fast.DecodeAdd(y, a)
	plain.DecodeAdd(z, a)
	equalBits(t, z, y, "%s of %d added", name, n)
	fast.Decode(y, a)
	plain.Decode(z, a)
	equalBits(t, z, y, "%s of %d decoded", name, n)
}

// sameSums compares what low-rank factors and momentum need.
func sameSums(t *testing.T, x, other []float32) {
	t.Helper()
	sum, want := slices.Clone(x), slices.Clone(x)
	Add(sum, x)
	for i := range want {
		want[i] += x[i]
	}
	equalBits(t, want, sum, "sum")
	y, z := other, slices.Clone(other)
	addScaled(y, x, 0.3)
	for i := range z {
		z[i] += float32(x[i] * 0.3)
	}
	equalBits(t, z, y, "scaled sum")
	for _, nesterov := range []bool{false, true} {
		kept, velocity := slices.Clone(y), slices.Clone(z)
		Momentum(kept, velocity, x, 0.9, nesterov)
		for i := range x {
			v := float32(0.9*z[i]) + x[i]
			equalBits(t, []float32{v}, velocity[i:i+1], "velocity")
			if nesterov {
				v = x[i] + float32(0.9*v)
			}
			equalBits(t, []float32{y[i] + v}, kept[i:i+1], "kept")
		}
	}
	require.Equal(t, largest(x) < 0x7f800000, Finite(x))
	equalBits(t, []float32{naiveDot(x, y)}, []float32{dot(x, y)}, "product")
}

func naiveDot(a, b []float32) float32 {
	var sums [dotLanes]float32
	whole := len(a) - len(a)%dotLanes
	for i := range whole {
		sums[i%dotLanes] += float32(a[i] * b[i])
	}
	total := float32(0)
	for _, s := range sums {
		total += s
	}
	for i := whole; i < len(a); i++ {
		total += float32(a[i] * b[i])
	}
	return total
}

// equalBits compares floats, of which NaN are all alike.
func equalBits(t *testing.T, want, got []float32, format string, args ...any) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		if math.Float32bits(want[i]) != math.Float32bits(got[i]) && (want[i] == want[i] || got[i] == got[i]) {
			require.Equal(t, want[i], got[i], append([]any{format + ": element %d"}, append(args, i)...)...)
		}
	}
}
