package devicetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/gradfusion/gradfusion/device"
)

// attentionBound is for float32 products, exponentials and sums of up to a few
// hundred terms, one after the other.
const attentionBound = 5e-6

func sequenceExperiments() []experiment {
	var all []experiment
	for _, size := range [][2]int{{0, 4}, {1, 1}, {3, 7}, {5, 16}, {33, 17}, {70, 100}, {4, 1030}} {
		for _, accumulate := range []bool{false, true} {
			d := device.LayerNorm{Rows: size[0], Cols: size[1], Epsilon: 1e-5, Accumulate: accumulate}
			all = append(all, experiment{fmt.Sprintf("layer norm %+v", d), func(l *lab, k device.Kernels) { layerNorm(l, k, d) }})
		}
	}
	for _, size := range [][3]int{{0, 3, 2}, {1, 1, 1}, {7, 3, 5}, {300, 11, 130}, {40, 50, 16}} {
		for _, accumulate := range []bool{false, true} {
			d := device.Embedding{Rows: size[0], Count: size[1], Width: size[2], Accumulate: accumulate}
			all = append(all, experiment{fmt.Sprintf("embedding %+v", d), func(l *lab, k device.Kernels) { embedding(l, k, d) }})
		}
	}
	for _, size := range [][4]int{{1, 1, 1, 1}, {2, 0, 1, 4}, {2, 5, 3, 4}, {1, 17, 2, 16}, {2, 33, 1, 17}, {1, 50, 2, 32}, {1, 130, 1, 40}, {3, 48, 2, 8}} {
		for variant := range 4 {
			d := device.Attention{Batch: size[0], Length: size[1], Heads: size[2], Width: size[3], Causal: variant&1 != 0, Accumulate: variant&2 != 0}
			if variant == 3 {
				d.Scale = 0.3
			}
			all = append(all, experiment{fmt.Sprintf("attention %+v", d), func(l *lab, k device.Kernels) { attention(l, k, d) }})
		}
	}
	return all
}

func layerNorm(l *lab, k device.Kernels, d device.LayerNorm) {
	x, scale, shift := l.floats(d.Len()), l.floats(d.Cols), l.floats(d.Cols)
	y, mean, invstd := l.buffer(device.F32, d.Len()), l.buffer(device.F32, d.Rows), l.buffer(device.F32, d.Rows)
	k.LayerNormForward(d, y, mean, invstd, x, scale, shift)
	l.keep("y", y, normBound)
	l.keep("mean", mean, normBound)
	l.keep("invstd", invstd, normBound)
	far := l.clone(x)
	for i := range far.F32() {
		far.F32()[i] += 3000
	}
	fy, fm, fi := l.buffer(device.F32, d.Len()), l.buffer(device.F32, d.Rows), l.buffer(device.F32, d.Rows)
	k.LayerNormForward(d, fy, fm, fi, far, scale, shift)
	l.keep("y about 3000", fy, normBound)
	l.keep("mean about 3000", fm, 1e-7)
	if d.Cols > 1 {
		l.keep("invstd about 3000", fi, normBound)
	}
	dy, m, inverse := l.floats(d.Len()), l.floats(d.Rows), l.positive(d.Rows)
	dx, dscale, dshift := l.target(d.Len(), d.Accumulate), l.buffer(device.F32, d.Cols), l.buffer(device.F32, d.Cols)
	k.LayerNormBackward(d, dx, dscale, dshift, dy, x, m, inverse, scale)
	l.keep("dx", dx, normBound)
	l.keep("dscale", dscale, normBound)
	l.keep("dshift", dshift, normBound)
	dscale, dshift = l.buffer(device.F32, d.Cols), l.buffer(device.F32, d.Cols)
	k.LayerNormBackward(d, device.Buf{}, dscale, dshift, dy, x, m, inverse, scale)
	l.keep("dscale without dx", dscale, normBound)
	l.keep("dshift without dx", dshift, normBound)
	dscale, dshift = l.buffer(device.F32, d.Cols), l.buffer(device.F32, d.Cols)
	k.LayerNormBackward(d, dy, dscale, dshift, dy, x, m, inverse, scale)
	l.keep("dx over dy", dy, normBound)
	mean, invstd = l.buffer(device.F32, d.Rows), l.buffer(device.F32, d.Rows)
	k.LayerNormForward(d, x, mean, invstd, x, scale, shift)
	l.keep("y over x", x, normBound)
}

func embedding(l *lab, k device.Kernels, d device.Embedding) {
	table, y, ids := l.floats(d.Count*d.Width), l.buffer(device.F32, d.Rows*d.Width), l.buffer(device.I32, d.Rows)
	for i := range ids.I32() {
		ids.I32()[i] = int32(l.random.IntN(d.Count+1) / 2) // some are never looked up
	}
	k.EmbeddingForward(d, y, table, ids)
	l.keep("y", y, 0)
	dy, dtable := l.floats(d.Rows*d.Width), l.target(d.Count*d.Width, d.Accumulate)
	k.EmbeddingBackward(d, dtable, dy, ids)
	l.keep("dtable", dtable, productBound)
}

func attention(l *lab, k device.Kernels, d device.Attention) {
	qkv, y, logsum := l.floats(3*d.YLen()), l.buffer(device.F32, d.YLen()), l.buffer(device.F32, d.LogLen())
	k.AttentionForward(d, y, logsum, qkv)
	l.keep("y", y, attentionBound)
	l.keep("logsum", logsum, attentionBound)
	dy, dqkv := l.floats(d.YLen()), l.target(3*d.YLen(), d.Accumulate)
	k.AttentionBackward(d, dqkv, dy, qkv, y, logsum)
	l.keep("dqkv", dqkv, attentionBound)
	// Scores far apart: all weight on the largest.
	k.Scale(qkv, qkv, 30)
	y, logsum = l.buffer(device.F32, d.YLen()), l.buffer(device.F32, d.LogLen())
	k.AttentionForward(d, y, logsum, qkv)
	// Scores of some thousands are rounded to 1e-4, and so are their exponentials.
	l.keep("y of large scores", y, 1e-4)
	l.keep("logsum of large scores", logsum, attentionBound)
}

func sequenceMisuse(t *testing.T, k device.Kernels) {
	f := func(n int) device.Buf { return device.FromF32(make([]float32, n)) }
	for name, call := range map[string]func(){
		"activation": func() {
			k.MatMul(device.MatMul{M: 1, N: 1, K: 1, Activation: device.GELU}, f(1), f(1), f(1), device.Buf{})
		},
		"layer norm": func() { k.LayerNormForward(device.LayerNorm{Rows: 2, Cols: 2}, f(4), f(2), f(1), f(4), f(2), f(2)) },
		"logsum": func() {
			k.AttentionForward(device.Attention{Batch: 1, Length: 2, Heads: 1, Width: 1}, f(2), f(1), f(6))
		},
		"no heads": func() { k.AttentionForward(device.Attention{Batch: 1, Length: 2, Width: 1}, f(2), f(2), f(6)) },
		"table": func() {
			k.EmbeddingForward(device.Embedding{Rows: 1, Count: 2, Width: 2}, f(2), f(3), device.FromI32([]int32{0}))
		},
	} {
		var shape *device.ShapeError
		if err := panicOf(call); !errors.As(err, &shape) {
			t.Errorf("%s: panic with %v, want a *device.ShapeError", name, err)
		}
	}
	for _, id := range []int32{-1, 2} {
		var index *device.IndexError
		err := panicOf(func() {
			k.EmbeddingForward(device.Embedding{Rows: 2, Count: 2, Width: 1}, f(2), f(2), device.FromI32([]int32{1, id}))
		})
		if !errors.As(err, &index) || index.Row != 1 || index.Index != id {
			t.Errorf("index: panic with %v, want a *device.IndexError", err)
		}
	}
}
