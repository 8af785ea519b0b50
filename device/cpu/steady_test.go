package cpu_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
)

// calls is one call of each kernel that a training step makes.
func calls() map[string]func(k device.Kernels) {
	conv := device.Conv{N: 4, C: 16, H: 8, W: 8, K: 32, R: 3, S: 3, StrideH: 2, StrideW: 2, PadH: 1, PadW: 1, XLayout: device.Blocked16}
	tiles := device.Conv{N: 4, C: 16, H: 8, W: 8, K: 32, R: 3, S: 3, StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, XLayout: device.Blocked16}
	groups, lanes := conv, conv
	groups.Groups = 2
	lanes.Groups, lanes.K = 16, 16
	norm := device.BatchNorm{N: 4, C: 16, H: 8, W: 8, Layout: device.Blocked16, Activation: device.ReLU}
	x, dx, y := ramp(conv.XLen()), ramp(conv.XLen()), ramp(conv.YLen())
	w, dw := ramp(conv.WeightLen()), ramp(conv.WeightLen())
	mean, m2 := device.FromF64(make([]float64, 16)), device.FromF64(make([]float64, 16))
	channels, gradients, shifts := ramp(16), ramp(16), ramp(16)
	means, deviations := ramp(100), ramp(100)
	long, other := ramp(100000), ramp(100000)
	product := device.MatMul{M: 100, N: 50, K: 60, TransA: true, TransB: true, Activation: device.ReLU}
	a, b, c := ramp(6000), ramp(3000), ramp(5000)
	loss, correct, labels := device.FromF64(make([]float64, 1)), device.FromI32(make([]int32, 1)), device.FromI32(make([]int32, 10))
	entropy := device.CrossEntropy{Rows: 10, Classes: 10}
	logits, probs := ramp(100), ramp(100)
	squares := device.FromF64(make([]float64, 1000))
	parts := []device.Buf{long, other}
	half := device.FromBytes(device.F16, make([]byte, 200000))
	rows := device.LayerNorm{Rows: 100, Cols: 50, Epsilon: 1e-5}
	lookup := device.Embedding{Rows: 10, Count: 4, Width: 10}
	heads := device.Attention{Batch: 2, Length: 40, Heads: 2, Width: 8, Causal: true}
	qkv, dqkv, attended, logsum := ramp(3*heads.YLen()), ramp(3*heads.YLen()), ramp(heads.YLen()), ramp(heads.LogLen())
	columns := device.BatchNorm{N: 100, C: 16, H: 1, W: 1, Activation: device.ReLU}
	pool := device.Pool{Kind: device.MaxPool, N: 4, C: 16, H: 8, W: 8, R: 3, S: 3, StrideH: 2, StrideW: 2, PadH: 1, PadW: 1}
	places := device.FromI32(make([]int32, pool.YLen()))
	tilesY := ramp(tiles.YLen())
	qkv16, dqkv16 := half.Slice(0, qkv.Len), half.Slice(qkv.Len, 2*qkv.Len)
	return map[string]func(k device.Kernels){
		"winograd forward":    func(k device.Kernels) { k.ConvForward(tiles, tilesY, x, w, device.Buf{}) },
		"winograd input":      func(k device.Kernels) { k.ConvBackwardInput(tiles, dx, tilesY, w) },
		"winograd weight":     func(k device.Kernels) { k.ConvBackwardWeight(tiles, dw, x, tilesY) },
		"groups forward":      func(k device.Kernels) { k.ConvForward(groups, y, x, w, device.Buf{}) },
		"groups input":        func(k device.Kernels) { k.ConvBackwardInput(groups, dx, y, w) },
		"groups weight":       func(k device.Kernels) { k.ConvBackwardWeight(groups, dw, x, y) },
		"depthwise forward":   func(k device.Kernels) { k.ConvForward(lanes, y, x, w, device.Buf{}) },
		"depthwise input":     func(k device.Kernels) { k.ConvBackwardInput(lanes, dx, y, w) },
		"depthwise weight":    func(k device.Kernels) { k.ConvBackwardWeight(lanes, dw, x, y) },
		"layer norm":          func(k device.Kernels) { k.LayerNormForward(rows, c, means, deviations, a, b, b) },
		"layer norm backward": func(k device.Kernels) { k.LayerNormBackward(rows, c, means, deviations, a, a, b, b, b) },
		"embedding":           func(k device.Kernels) { k.EmbeddingForward(lookup, probs, a, labels) },
		"embedding backward":  func(k device.Kernels) { k.EmbeddingBackward(lookup, b, a, labels) },
		"attention":           func(k device.Kernels) { k.AttentionForward(heads, attended, logsum, qkv) },
		"attention backward":  func(k device.Kernels) { k.AttentionBackward(heads, dqkv, attended, qkv, attended, logsum) },
		"attention, 16 bits":  func(k device.Kernels) { k.AttentionForward(heads, attended, logsum, qkv16) },
		"attention back, 16":  func(k device.Kernels) { k.AttentionBackward(heads, dqkv16, attended, qkv16, attended, logsum) },
		"norm of vectors": func(k device.Kernels) {
			k.BatchNormBackward(columns, a, device.Buf{}, gradients, shifts, a, b, b, channels, channels, channels, false)
		},
		"max pool":          func(k device.Kernels) { k.PoolForward(pool, y, places, x) },
		"max pool backward": func(k device.Kernels) { k.PoolBackward(pool, dx, y, places) },
		"global backward":   func(k device.Kernels) { k.GlobalAvgBackward(dx, c, 4, 16, 8, 8, true) },
		"gelu":              func(k device.Kernels) { k.Activate(device.GELU, long, other) },
		"gelu backward":     func(k device.Kernels) { k.ActivateBackward(device.GELU, long, other, other, true) },
		"dropout":           func(k device.Kernels) { k.Dropout(long, other, 0.1, 1) },
		"conv forward":      func(k device.Kernels) { k.ConvForward(conv, y, x, w, device.Buf{}) },
		"conv input":        func(k device.Kernels) { k.ConvBackwardInput(conv, dx, y, w) },
		"conv weight":       func(k device.Kernels) { k.ConvBackwardWeight(conv, dw, x, y) },
		"moments":           func(k device.Kernels) { k.Moments(norm, mean, m2, x) },
		"norm forward": func(k device.Kernels) {
			k.BatchNormForward(norm, dx, x, channels, channels, channels, channels, device.Buf{})
		},
		"norm backward": func(k device.Kernels) {
			k.BatchNormBackward(norm, dx, device.Buf{}, gradients, shifts, x, x, x, channels, channels, channels, false)
		},
		"matmul":        func(k device.Kernels) { k.MatMul(product, c, a, b, device.Buf{}) },
		"sum rows":      func(k device.Kernels) { k.SumRows(gradients, a, 100, 16, false) },
		"add":           func(k device.Kernels) { k.Add(long, long, other) },
		"fold":          func(k device.Kernels) { k.Fold(long, parts) },
		"cast":          func(k device.Kernels) { k.Cast(half, long) },
		"sgd":           func(k device.Kernels) { k.SGD(device.Update{Step: 2, Momentum: 0.9}, long, other, other) },
		"squares":       func(k device.Kernels) { k.SumSquares(squares, long) },
		"finite":        func(k device.Kernels) { k.AllFinite(long) },
		"reorder":       func(k device.Kernels) { k.Reorder(dx, device.Plain, x, device.Blocked16, 4, 16, 8, 8) },
		"global pool":   func(k device.Kernels) { k.GlobalAvgForward(c, x, 4, 16, 8, 8) },
		"cross-entropy": func(k device.Kernels) { k.CrossEntropyForward(entropy, loss, correct, probs, logits, labels) },
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	repeats := 50
	if testing.Short() {
		repeats = 10
	}
	for _, threads := range []int{1, 2} {
		k := open(t, cpu.Config{Threads: threads}).Kernels()
		for name, call := range calls() {
			for range 20 { // both threads' scratch has grown
				call(k)
			}
			require.Zero(t, testing.AllocsPerRun(repeats, func() { call(k) }), "%s with %d threads", name, threads)
		}
	}
}

// TestCallersShareTheThreads runs the same products from several goroutines on
// one device; each must get what it gets alone.
func TestCallersShareTheThreads(t *testing.T) {
	d := open(t, cpu.Config{Threads: 3})
	product := device.MatMul{M: 70, N: 90, K: 50}
	want := ramp(70 * 90)
	a, b := ramp(70*50), ramp(50*90)
	d.Kernels().MatMul(product, want, a, b, device.Buf{})
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			got := ramp(70 * 90)
			for range 50 {
				d.Kernels().MatMul(product, got, a, b, device.Buf{})
				if string(got.Bytes()) != string(want.Bytes()) {
					t.Error("a concurrent product differs")
					return
				}
			}
		})
	}
	callers.Wait()
}

func TestKernelsAfterClose(t *testing.T) {
	d, err := cpu.New(cpu.Config{Threads: 2})
	require.NoError(t, err)
	require.NoError(t, d.Close())
	x := ramp(100000)
	d.Kernels().Scale(x, x, 0)
	require.True(t, d.Kernels().AllFinite(x))
}
