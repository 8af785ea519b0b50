package parallel

import (
	"context"
	"errors"
	"fmt"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// normGroup makes the BatchNorms of several ranks take their statistics
// together: it is the nn.Across of this rank's layers. The first micro-batches of
// all ranks' runs are one group, so are the second ones, and so on; a rank whose
// run is over takes part in the rest with no values, until all are done.
//
// Each exchange is one all-gather of messages of one length, folded in the order
// of ranks, so that all ranks hold the same bits. A message says what it is about,
// so that ranks that do not run the same layers in the same order learn so.
//
//	kind, layer, count, then means and squares of deviations, or sums
type normGroup struct {
	ctx      context.Context // of the GradFusion
	comm     collective.Comm
	layers   []string
	index    map[string]int
	width    int // of a message
	own, all []float64
}

const normHead = 3

// What a message is about.
const (
	normDone    = iota // the run of this rank is over
	normMoments        // of a forward pass
	normSums           // of a backward pass
)

// errNorms is wrapped by the error of ranks that normalise different layers.
var errNorms = errors.New("the ranks do not run the same BatchNorms in the same order")

// newNormGroup attaches the layers of running to the group of comm's ranks.
func newNormGroup(ctx context.Context, comm collective.Comm, running []*nn.Running) *normGroup {
	n := &normGroup{ctx: ctx, comm: comm, index: map[string]int{}}
	for i, r := range running {
		r.Across = n
		n.layers = append(n.layers, r.Name)
		n.index[r.Name] = i
		n.width = max(n.width, normHead+2*r.Channels)
	}
	n.own, n.all = make([]float64, n.width), make([]float64, n.width*comm.Size())
	return n
}

// Moments implements nn.Across: the pairwise update of Chan, Golub and LeVeque
// 1979, rank after rank.
func (n *normGroup) Moments(layer string, count int, mean, m2 []float64) (total int, err error) {
	if _, err := n.exchange(normMoments, layer, count, mean, m2); err != nil {
		return 0, err
	}
	clear(mean)
	clear(m2)
	for r := range n.comm.Size() {
		message := n.message(r)
		k := message[2]
		if message[0] == normDone || k == 0 {
			continue
		}
		have := float64(total)
		sum := have + k
		for c := range mean {
			d := message[normHead+c] - mean[c]
			mean[c] += float64(d * (k / sum))
			m2[c] += message[normHead+len(mean)+c] + float64(float64(d*d)*(have*k/sum))
		}
		total += int(k)
	}
	return total, nil
}

// Sums implements nn.Across.
func (n *normGroup) Sums(layer string, sums []float64) error {
	if _, err := n.exchange(normSums, layer, 0, sums, nil); err != nil {
		return err
	}
	clear(sums)
	for r := range n.comm.Size() {
		message := n.message(r)
		if message[0] == normDone {
			continue
		}
		for c := range sums {
			sums[c] += message[normHead+c]
		}
	}
	return nil
}

// finish ends this rank's run: it takes part in what other ranks still do.
func (n *normGroup) finish() error {
	for {
		if done, err := n.exchange(normDone, "", 0, nil, nil); err != nil || done {
			return err
		}
	}
}

func (n *normGroup) message(rank int) []float64 { return n.all[rank*n.width : (rank+1)*n.width] }

// exchange sends a message to all ranks and reports whether all are done.
func (n *normGroup) exchange(kind int, layer string, count int, first, second []float64) (done bool, err error) {
	n.own[0], n.own[1], n.own[2] = float64(kind), float64(n.index[layer]), float64(count)
	at := normHead + copy(n.own[normHead:], first)
	copy(n.own[at:], second)
	call := collective.Call{Kind: plan.AllGather, In: device.FromF64(n.own), Out: device.FromF64(n.all), Label: "BatchNorm " + layer}
	if kind == normDone {
		call.Label = "BatchNorm of longer runs"
	}
	if err := n.comm.Start(n.ctx, call).Wait(n.ctx); err != nil {
		return false, fmt.Errorf("statistics over ranks: %w", err)
	}
	return n.check()
}

// check compares what the ranks are at.
func (n *normGroup) check() (done bool, err error) {
	busy := -1
	for r := range n.comm.Size() {
		m := n.message(r)
		switch {
		case m[0] == normDone:
		case busy < 0:
			busy = r
		case m[0] != n.message(busy)[0] || m[1] != n.message(busy)[1]:
			return false, fmt.Errorf("%w: rank %d is in the %s, rank %d in the %s", errNorms, busy, n.describe(busy), r, n.describe(r))
		}
	}
	return busy < 0, nil
}

func (n *normGroup) describe(rank int) string {
	m := n.message(rank)
	pass := "forward"
	if m[0] == normSums {
		pass = "backward"
	}
	return pass + " pass of " + n.layers[int(m[1])%len(n.layers)]
}

// detach gives the layers back their own statistics.
func (n *normGroup) detach(stages []*stage) {
	for _, s := range stages {
		for _, r := range s.running {
			if r.Across == nn.Across(n) {
				r.Across = nil
			}
		}
	}
}

// startNorms makes the group that FusionConfig.SyncBatchNorm asks for.
func (g *GradFusion) startNorms() {
	var running []*nn.Running
	for _, s := range g.stages {
		running = append(running, s.running...)
	}
	if g.cfg.SyncBatchNorm != nil && len(running) > 0 {
		g.norms = newNormGroup(g.ctx, g.cfg.SyncBatchNorm, running)
	}
}

// endNorms takes part in the statistics of longer runs than this rank's, and
// returns a function that waits for that. On a rank without micro-batches it does
// so beside the caller, because the others cut the buckets, in which the rank has
// to take part, in the middle of their first micro-batch.
func (g *GradFusion) endNorms(empty bool) (wait func() error) {
	switch {
	case g.norms == nil:
		return func() error { return nil }
	case !empty:
		return g.norms.finish
	}
	ended := make(chan error, 1)
	go func() { ended <- g.norms.finish() }()
	return func() error { return <-ended }
}
