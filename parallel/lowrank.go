package parallel

import (
	"context"
	"hash/fnv"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/wire"
)

// lowRankReduction is PowerSGD: it sums a bucket by two small all-reduces. A
// parameter is a matrix of its first dimension times the others; one of fewer than
// two dimensions, or whose factors would be no smaller, travels as it is, with the
// first factors. Of a matrix of n x m a rank sends 2 (R-1)/R r (n + m) numbers in
// place of 2 (R-1)/R n m.
type lowRankReduction struct {
	*queue
	r *reducer
	c Compression
}

// lowRankBucket is what a bucket's calls carry.
type lowRankBucket struct {
	matrices []lowRankMatrix
	rest     [][2]int // where the other parameters lie in the bucket
	rows     []float32
	columns  []float32
	own      []float32 // this rank's columns, before they are summed
}

// lowRankMatrix is a parameter that is sent as two factors.
type lowRankMatrix struct {
	e             *entry
	rows, columns int
	rowsAt        int       // of its first factor in lowRankBucket.rows
	columnsAt     int       // of its second
	factor        []float32 // the second one of the last step, with which the next begins
	seed          uint64    // of its name, which tells parameters apart
}

func newLowRankReduction(r *reducer) reduction {
	l := &lowRankReduction{r: r, c: r.cfg.Wire}
	l.queue = newQueue(func(b *bucket) error { return l.reduce(r.ctx, b) })
	return l
}

// start enqueues a bucket; before the first compressed step it is plain.
func (l *lowRankReduction) start(b *bucket) *collective.Work {
	if l.r.step < l.c.start() {
		return plainReduction{l.r}.start(b)
	}
	return l.queue.start(b)
}

// newLowRankBucket lists a bucket's matrices.
func newLowRankBucket(b *bucket, rank int) *lowRankBucket {
	out := &lowRankBucket{}
	rowNumbers, columnNumbers, others := 0, 0, 0
	for _, e := range b.entries {
		n := e.param.Len()
		rows := 1
		if len(e.param.Shape) > 1 {
			rows = e.param.Shape[0]
		}
		columns := n / max(rows, 1)
		if rank*(rows+columns) >= n {
			out.rest = append(out.rest, [2]int{e.offset, e.offset + n})
			others += n
			continue
		}
		name := fnv.New64a()
		name.Write([]byte(e.param.Name))
		out.matrices = append(out.matrices, lowRankMatrix{e: e, rows: rows, columns: columns, rowsAt: rowNumbers, columnsAt: columnNumbers, seed: name.Sum64()})
		rowNumbers, columnNumbers = rowNumbers+rank*rows, columnNumbers+rank*columns
	}
	out.rows, out.columns, out.own = make([]float32, rowNumbers+others), make([]float32, columnNumbers), make([]float32, columnNumbers)
	for i := range out.matrices {
		m := &out.matrices[i]
		m.factor = out.columns[m.columnsAt : m.columnsAt+rank*m.columns]
	}
	return out
}

// matrix is the parameter's, or nil.
func (s *lowRankBucket) matrix(e *entry) *lowRankMatrix {
	for i := range s.matrices {
		if s.matrices[i].e == e {
			return &s.matrices[i]
		}
	}
	return nil
}

// reduce leaves the sum in b.grad on every rank.
func (l *lowRankReduction) reduce(ctx context.Context, b *bucket) error {
	l.r.remember(b)
	s, rank := b.feedback.lowRank, l.c.rank()
	b.feedback.rescale(l.r.lossScale)
	kept, grad := b.feedback.kept, b.grad.F32()
	wire.Add(kept, grad) // what is owed; of the rest nothing is kept
	for i := range s.matrices {
		m := &s.matrices[i]
		wire.Renew(m.factor, m.columns, rank, wire.Seed(l.c.Seed, uint64(l.r.step), m.seed))
		wire.ProjectRows(m.left(s, rank), m.in(kept), m.factor, m.rows, m.columns, rank)
	}
	s.others(grad, kept, func(number, gradient, kept *float32) { *number, *kept = *gradient, 0 })
	if err := l.sum(ctx, b, s.rows); err != nil {
		return err
	}
	s.others(grad, kept, func(number, gradient, _ *float32) { *gradient = *number })
	for i := range s.matrices {
		m := &s.matrices[i]
		left := m.left(s, rank)
		wire.Orthonormalise(left, m.rows, rank)
		wire.ProjectColumns(m.factor, m.in(kept), left, m.rows, m.columns, rank)
	}
	copy(s.own, s.columns)
	if err := l.sum(ctx, b, s.columns); err != nil {
		return err
	}
	for i := range s.matrices {
		m := &s.matrices[i]
		left, own := m.left(s, rank), s.own[m.columnsAt:m.columnsAt+rank*m.columns]
		wire.Expand(m.in(grad), left, m.factor, m.rows, m.columns, rank, false)
		wire.Expand(m.in(kept), left, own, m.rows, m.columns, rank, true)
		dropNotFinite(m.in(kept))
	}
	return nil
}

func (l *lowRankReduction) sum(ctx context.Context, b *bucket, numbers []float32) error {
	return l.r.comm.Start(ctx, collective.Call{Kind: plan.AllReduce, In: device.FromF32(numbers), Label: b.label}).Wait(ctx)
}

// in is the matrix in memory that is laid out as the bucket.
func (m *lowRankMatrix) in(bucket []float32) []float32 {
	return bucket[m.e.offset : m.e.offset+m.rows*m.columns]
}

// left is the first factor.
func (m *lowRankMatrix) left(s *lowRankBucket, rank int) []float32 {
	return s.rows[m.rowsAt : m.rowsAt+rank*m.rows]
}

// others visits the numbers of the parameters that travel as they are: their
// places among the rows, in the gradient and in what is kept.
func (s *lowRankBucket) others(grad, kept []float32, visit func(number, gradient, kept *float32)) {
	at := len(s.rows)
	for _, r := range s.rest {
		at -= r[1] - r[0]
	}
	for _, r := range s.rest {
		for i := r[0]; i < r[1]; i++ {
			visit(&s.rows[at], &grad[i], &kept[i])
			at++
		}
	}
}

// dropNotFinite forgets what a step with numbers that are not finite has left,
// which would be sent for ever.
func dropNotFinite(kept []float32) {
	for i, v := range kept {
		if v-v != 0 {
			kept[i] = 0
		}
	}
}
