package bench

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func result(algorithm string, bytes int, us float64) Result {
	r := Result{Op: "allreduce", DType: "f32", Bytes: bytes, Ranks: 4, Transport: "shm", Algorithm: algorithm, Registered: true,
		Iterations: 100, P50: us, Best: us / 2, Correct: true}
	r.rate(Operations()[0])
	return r
}

func TestOperationNames(t *testing.T) {
	var names []string
	for _, o := range Operations() {
		names = append(names, o.Name)
		got, err := ParseOperation(o.Name)
		require.NoError(t, err)
		require.Equal(t, o, got)
	}
	require.Equal(t, "allreduce reduce broadcast allgather reducescatter gather scatter alltoall barrier sendrecv", strings.Join(names, " "))
	got, err := ParseOperation("Reduce-Scatter")
	require.NoError(t, err)
	require.Equal(t, "reducescatter", got.Name)
	_, err = ParseOperation("sum")
	require.ErrorContains(t, err, "known: allreduce")
}

// TestBandwidths: 8e6 bytes in 2 ms are 4 GB/s.
func TestBandwidths(t *testing.T) {
	for name, bus := range map[string]float64{
		"allreduce": 6, "reducescatter": 3, "allgather": 3, "gather": 3, "scatter": 3, "alltoall": 3,
		"reduce": 4, "broadcast": 4, "sendrecv": 4,
	} {
		o, err := ParseOperation(name)
		require.NoError(t, err)
		r := Result{Bytes: 8e6, Ranks: 4, P50: 2000}
		r.rate(o)
		require.Equal(t, 4.0, r.AlgBW, name)
		require.Equal(t, bus, r.BusBW, name)
	}
	barrier, err := ParseOperation("barrier")
	require.NoError(t, err)
	r := Result{Ranks: 4, P50: 3}
	r.rate(barrier)
	require.Zero(t, r.AlgBW)
	require.Zero(t, r.BusBW)
}

// TestJSON: exactly the keys of the contract, in its order.
func TestJSON(t *testing.T) {
	var b strings.Builder
	require.NoError(t, result("ring", 1<<20, 123.456789).WriteJSON(&b))
	require.Equal(t, `{"op":"allreduce","dtype":"f32","bytes":1048576,"ranks":4,"transport":"shm","algorithm":"ring","registered":true,`+
		`"iters":100,"lat_us_p50":123.457,"lat_us_best":61.7284,"algbw_gbps":8.49347,"busbw_gbps":12.7402,"correct":true}`+"\n", b.String())
	limited := result("ring", 1<<20, 100)
	limited.Limit = 80
	b.Reset()
	require.NoError(t, limited.WriteJSON(&b))
	var keys map[string]any
	require.NoError(t, json.Unmarshal([]byte(b.String()), &keys))
	require.Equal(t, 80.0, keys["limit_us"])
}

func TestMedian(t *testing.T) {
	require.Equal(t, 0.003, median([]int64{9, 1, 3}))
	require.Equal(t, 0.0035, median([]int64{9, 1, 3, 4}))
	require.Zero(t, median(nil))
}

func TestFitFindsTheLine(t *testing.T) {
	var all []Result
	for _, bytes := range []int{1 << 10, 1 << 14, 1 << 18, 1 << 22} {
		all = append(all, result("ring", bytes, 20+float64(bytes)/5/1e3)) // 20 us + bytes / 5 GB/s
	}
	f, ok := FitLine(all)
	require.True(t, ok)
	require.InEpsilon(t, 20, f.Latency, 1e-9) // rounding of the sums
	require.InEpsilon(t, 5, f.Bandwidth, 1e-9)
	require.InEpsilon(t, 100_000, f.Knee(), 1e-9)
	require.InEpsilon(t, 2*f.Latency, f.at(f.Knee()), 1e-9)

	_, ok = FitLine(all[:2])
	require.False(t, ok, "any two points are on a line")
	_, ok = FitLine([]Result{all[0], all[0], all[1]})
	require.False(t, ok, "two sizes, one of them twice")
}

// TestFitHasNoNegativeTerm: neither time before the start nor negative speed.
func TestFitHasNoNegativeTerm(t *testing.T) {
	f, ok := FitLine([]Result{result("a", 1000, 1), result("a", 2000, 3), result("a", 4000, 9)})
	require.True(t, ok)
	require.Zero(t, f.Latency)
	require.Positive(t, f.Bandwidth)
	require.Zero(t, f.Knee())
	f, ok = FitLine([]Result{result("a", 1000, 9), result("a", 2000, 3), result("a", 4000, 1)})
	require.True(t, ok)
	require.True(t, math.IsInf(f.Bandwidth, 1))
	require.Zero(t, f.Knee())
	// (1/9 + 1/3 + 1/1) / (1/81 + 1/9 + 1/1), the mean of least relative squares.
	require.Equal(t, "time fits 1.29 us whatever the size", f.String())
}

// TestCrossovers: two straight lines in logarithms cross where they are equal.
func TestCrossovers(t *testing.T) {
	var all []Result
	for _, bytes := range []int{1 << 10, 1 << 12, 1 << 16} {
		all = append(all, result("tree", bytes, float64(bytes)/1024), result("ring", bytes, 8)) // equal at 8 KiB
	}
	got := Crossovers(all)
	require.Len(t, got, 1)
	require.InEpsilon(t, 8<<10, got[0].Bytes, 1e-9) // logarithms
	require.InEpsilon(t, 8, got[0].Time, 1e-9)
	require.Equal(t, "tree", got[0].Below)
	require.Equal(t, "ring", got[0].Above)
	require.Empty(t, Crossovers(all[:3]))
	require.Empty(t, Crossovers(nil))
}
