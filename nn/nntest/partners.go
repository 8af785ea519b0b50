package nntest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
)

// Together runs f as each of n partners, on goroutines of their own, and returns
// their errors. Their sums are added up in the order of the ranks. When one
// fails, calls that wait for it fail too.
func Together(n int, f func(p nn.Partners) error) error {
	hall := &hall{size: n, kernels: naive.New().Kernels(), failed: make(chan struct{})}
	var running sync.WaitGroup
	errs := make([]error, n)
	for r := range n {
		running.Go(func() {
			if errs[r] = f(&partner{hall: hall, rank: r}); errs[r] != nil {
				errs[r] = fmt.Errorf("partner %d: %w", r, errs[r])
				hall.fail()
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// ErrLeft is what a call returns when a partner that it needs has failed.
var ErrLeft = errors.New("a partner failed")

// hall is where partners meet.
type hall struct {
	size    int
	kernels device.Kernels
	failed  chan struct{}

	mu     sync.Mutex
	over   bool
	rounds []*round
}

// round is one call of all partners.
type round struct {
	op      device.ReduceOp
	label   string
	bufs    []device.Buf
	present int
	err     error
	done    chan struct{}
	failed  chan struct{}
}

type partner struct {
	*hall
	rank  int
	calls int
}

// Rank implements nn.Partners.
func (p *partner) Rank() int { return p.rank }

// Size implements nn.Partners.
func (p *partner) Size() int { return p.size }

// Start implements nn.Partners: the last partner to come computes for all.
func (p *partner) Start(op device.ReduceOp, buf device.Buf, label string) nn.Pending {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls == len(p.rounds) {
		p.rounds = append(p.rounds, &round{op: op, label: label, bufs: make([]device.Buf, p.size), done: make(chan struct{}), failed: p.failed})
	}
	r := p.rounds[p.calls]
	p.calls++
	if other := r.bufs[0]; r.present > 0 && (op != r.op || label != r.label || other.Len > 0 && other.Len != buf.Len) {
		r.err = fmt.Errorf("partner %d calls %s with %d elements, another one %s", p.rank, label, buf.Len, r.label)
	}
	r.bufs[p.rank] = buf
	if r.present++; r.present == p.size {
		r.reduce(p.kernels)
		close(r.done)
	}
	return r
}

func (r *round) reduce(kernels device.Kernels) {
	if r.err != nil {
		return
	}
	for _, b := range r.bufs[1:] {
		kernels.Reduce(r.op, r.bufs[0], b)
	}
	for _, b := range r.bufs[1:] {
		copy(b.Bytes(), r.bufs[0].Bytes())
	}
}

// Wait implements nn.Pending.
func (r *round) Wait() error {
	select {
	case <-r.done:
		return r.err
	case <-r.failed:
		return ErrLeft
	}
}

func (h *hall) fail() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over {
		h.over = true
		close(h.failed)
	}
}
