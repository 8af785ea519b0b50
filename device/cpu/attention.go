package cpu

import (
	"math"

	"github.com/gradfusion/gradfusion/device"
)

// attentionTask is attention of all heads; part i is one head of one sequence,
// which one thread computes a block of queries at a time.
type attentionTask struct {
	set                *kernelSet
	d                  device.Attention
	backward           bool
	qkv, y, log        []float32
	dqkv, dy           []float32
	halves             attentionHalves // what has 16 bits, which is not above
	width, token, wide int             // floats of a head, of a token in y, and in qkv
	apart              int             // floats from queries to keys and from these to values
	mask               columnMask
	narrow             bool // the last panel of a head is not whole
}

// queryRows is how many queries a block has. Their scores against all keys stay
// in the second-level cache. A causal block computes the scores of its diagonal
// in vain, so it is small.
const (
	queryRows       = 48
	causalQueryRows = 24
)

// scorePadding keeps rows of scores from a common power of two.
const scorePadding = tileColumns

// attentionScratch is a thread's memory for one head.
type attentionScratch struct {
	keys, values        memory // panels of tokens for products with queries
	keyRows, valueRows  memory // panels of a head's floats, a line a token
	queries, gradients  memory // the same of one block of queries
	scores, scoreSlopes memory // [query][token]
	sums                memory // of each query
	head                memory // what of one head has 16 bits, as float32
	widened             attentionTask
	left, right         []row
	along, down         []int64
}

func (k *kernels) AttentionForward(d device.Attention, y, logsum, qkv device.Buf) {
	d.RequireForward(y, logsum, qkv)
	t := attentionTask{d: d, log: logsum.F32()}
	if device.IsHalf(qkv, y) {
		t.halves = attentionHalves{used: true, qkv: k.set.tensor(qkv), y: k.set.tensor(y)}
	} else {
		t.qkv, t.y = qkv.F32(), y.F32()
	}
	k.runAttention(t)
}

func (k *kernels) AttentionBackward(d device.Attention, dqkv, dy, qkv, y, logsum device.Buf) {
	d.RequireBackward(dqkv, dy, qkv, y, logsum)
	t := attentionTask{d: d, backward: true, log: logsum.F32()}
	if device.IsHalf(qkv, y, dqkv, dy) {
		t.halves = attentionHalves{true, k.set.tensor(qkv), k.set.tensor(y), k.set.tensor(dqkv), k.set.tensor(dy)}
	} else {
		t.qkv, t.y, t.dqkv, t.dy = qkv.F32(), y.F32(), dqkv.F32(), dy.F32()
	}
	k.runAttention(t)
}

func (k *kernels) runAttention(t attentionTask) {
	if t.d.Length == 0 {
		return
	}
	w := k.take()
	w.attention = t
	h := &w.attention
	h.set, h.width, h.token, h.wide = k.set, t.d.Width, t.d.Heads*t.d.Width, 3*t.d.Heads*t.d.Width
	h.apart = h.token
	h.narrow = h.mask.last(h.width)
	k.pool.run(w, h, t.d.Batch*t.d.Heads)
	w.attention = attentionTask{}
	k.give(w)
}

// attentionHead is where one head of one sequence lies.
type attentionHead struct {
	*attentionTask
	s      *scratch
	m      *attentionScratch
	qkv, y int // offsets of the first token
	log    []float32
	stride int // floats of a row of scores
}

func (t *attentionTask) do(s *scratch, index int) {
	b, h := index/t.d.Heads, index%t.d.Heads
	length := t.d.Length
	head := attentionHead{
		attentionTask: t, s: s, m: &s.attention,
		qkv: b*length*t.wide + h*t.width, y: b*length*t.token + h*t.width,
		log:    t.log[index*length:][:length],
		stride: panels(length)*tileColumns + scorePadding,
	}
	if t.halves.used {
		head.widen(b, h)
	}
	block := queryRows
	if t.d.Causal {
		block = causalQueryRows
	}
	if t.backward {
		head.backwardBlocks(block)
	} else {
		head.forwardBlocks(block)
	}
	if t.halves.used {
		head.round(b, h)
		s.attention.widened = attentionTask{}
	}
	s.tile = tile{}
}

// part returns the offset of the queries, keys or values of the head.
func (t *attentionHead) part(i int) int { return t.qkv + i*t.apart }

// seen returns how many tokens a query sees.
func (t *attentionHead) seen(query int) int {
	if t.d.Causal {
		return query + 1
	}
	return t.d.Length
}

func (t *attentionHead) forwardBlocks(block int) {
	keys := t.tokenPanels(&t.m.keys, t.attentionTask.qkv[t.part(1):])
	values := t.linePanels(&t.m.valueRows, t.attentionTask.qkv[t.part(2):], t.wide, t.d.Length)
	sums := t.m.sums.floats(block)
	for first := 0; first < t.d.Length; first += block {
		last := min(first+block, t.d.Length)
		limit := t.seen(last - 1)
		scores := t.products(&t.m.scores, address(t.attentionTask.qkv, t.part(0)+first*t.wide), t.wide, keys, last-first, limit)
		for i := first; i < last; i++ {
			line := scores[(i-first)*t.stride:]
			sums[i-first] = t.softmax(line[:t.seen(i)], i)
			clear(line[t.seen(i):limit])
		}
		t.combine(address(t.attentionTask.y, t.y+first*t.token), t.token, scores, values, last-first, limit, 0)
		for i := first; i < last; i++ {
			line := t.attentionTask.y[t.y+i*t.token:][:t.width]
			t.set.scale(line, line, 1/sums[i-first])
		}
	}
}

// softmax replaces the scores of query i by exponentials and returns their sum.
func (t *attentionHead) softmax(line []float32, i int) float32 {
	scale := t.d.Factor()
	largest := scale * t.set.largest(line)
	sum := t.set.exponentials(line, line, scale, largest)
	t.log[i] = float32(float64(largest) + math.Log(float64(sum)))
	return sum
}

// backwardBlocks goes from the last queries, which see all keys, to the first,
// so that the first sum of every key's gradient can be stored.
func (t *attentionHead) backwardBlocks(block int) {
	qkv, dqkv, dy := t.attentionTask.qkv, t.attentionTask.dqkv, t.attentionTask.dy
	keys := t.tokenPanels(&t.m.keys, qkv[t.part(1):])
	values := t.tokenPanels(&t.m.values, qkv[t.part(2):])
	keyRows := t.linePanels(&t.m.keyRows, qkv[t.part(1):], t.wide, t.d.Length)
	kept := 0
	if t.d.Accumulate {
		kept = flagAccumulate
	}
	flags := kept
	for first := (t.d.Length - 1) / block * block; first >= 0; first -= block {
		last := min(first+block, t.d.Length)
		n, limit := last-first, t.seen(last-1)
		q, g := t.part(0)+first*t.wide, t.y+first*t.token
		scores := t.products(&t.m.scores, address(qkv, q), t.wide, keys, n, limit)
		slopes := t.products(&t.m.scoreSlopes, address(dy, g), t.token, values, n, limit)
		for i := first; i < last; i++ {
			at, seen := (i-first)*t.stride, t.seen(i)
			p, dp := scores[at:][:limit], slopes[at:][:limit]
			line := t.y + i*t.token
			mean := t.set.dot(dy[line:][:t.width], t.attentionTask.y[line:][:t.width])
			t.set.exponentials(p[:seen], p[:seen], t.d.Factor(), t.log[i])
			t.set.softmaxBackward(dp[:seen], p[:seen], dp[:seen], mean, t.d.Factor())
			clear(p[seen:])
			clear(dp[seen:])
		}
		t.combine(address(dqkv, q), t.wide, slopes, keyRows, n, limit, kept)
		queries := t.linePanels(&t.m.queries, qkv[q:], t.wide, n)
		gradients := t.linePanels(&t.m.gradients, dy[g:], t.token, n)
		t.spread(address(dqkv, t.part(1)), slopes, queries, n, limit, flags)
		t.spread(address(dqkv, t.part(2)), scores, gradients, n, limit, flags)
		flags = flagAccumulate
	}
}
