package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

// Config says what Run measures. Sizes must not be empty; the other fields have
// usable zero values.
type Config struct {
	Operations []Operation   // none: all-reduce
	Types      []device.Type // none: F32
	Sizes      []int         // in bytes, of the full vector; whole numbers of elements
	Algorithms []string      // none: "auto"; those that an operation lacks are left out
	Wires      []string      // wire formats of all-reduces of F32, as package wire names them, each beside the algorithms
	Private    bool          // ordinary memory, as devices that compute on the host have it, instead of Comm.Alloc's
	Gradients  bool          // timed calls have numbers like gradients, which can be packed, not zeros

	Iterations int           // timed calls; 0: as many as Budget allows, between 12 and 5000
	Warmup     int           // calls before them; 0: 8
	Budget     time.Duration // of a measurement's timed calls; 0: 500 ms

	// Limit asks for Result.Limit of all-reduces, which Kernels measure.
	Limit   bool
	Kernels collective.Reducer

	Waiting bool // asks for Result.Waiting

	// What the Comm cannot tell, for the results.
	Transport  string                       // the transport's name
	Registered bool                         // Comm.Alloc gives memory that ranks share
	Chosen     func(collective.Call) string // the algorithm that a call takes; nil: what was asked for
}

const (
	leastIterations = 12
	mostIterations  = 5000
	// apartAbove is the size from which each call follows a barrier.
	apartAbove = 128 << 10
	// togetherMost is how many smaller calls follow each other without one: a
	// rank that only sends must not run away from the others.
	togetherMost = 64
)

func (c Config) withDefaults() Config {
	if len(c.Operations) == 0 {
		c.Operations = Operations()[:1]
	}
	if len(c.Types) == 0 {
		c.Types = []device.Type{device.F32}
	}
	if len(c.Algorithms) == 0 {
		c.Algorithms = []string{auto}
	}
	if c.Warmup == 0 {
		c.Warmup = 8
	}
	if c.Budget == 0 {
		c.Budget = 500 * time.Millisecond
	}
	return c
}

// runner is one rank's Run.
type runner struct {
	Config
	comm   collective.Comm
	memory device.Buf // bytes for the largest trial
	times  []int64    // nanoseconds
}

// Run measures what c says and hands each result to report, on this goroutine.
// It is collective: every rank calls it with the same Config (Chosen and
// Kernels aside) and gets the same results. Errors are those of comm.
func Run(ctx context.Context, comm collective.Comm, c Config, report func(Result) error) error {
	r := &runner{Config: c.withDefaults(), comm: comm, times: make([]int64, 0, mostIterations)}
	if err := r.allocate(ctx); err != nil {
		return err
	}
	for _, op := range r.Operations {
		types := r.Types
		if !op.sized() {
			types = types[:1]
		}
		for _, t := range types {
			for _, size := range r.sizes(op) {
				for _, v := range r.variants(op, t) {
					result, err := r.measure(ctx, op, t, size, v)
					if err != nil {
						return fmt.Errorf("%s of %s: %w", op.title(), FormatSize(size), err)
					}
					if err := report(result); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// sizes are those that make a difference to the operation.
func (r *runner) sizes(op Operation) []int {
	if !op.sized() {
		return []int{0}
	}
	return r.Sizes
}

// allocate makes memory once for all trials: to fault pages in takes longer
// than many a call.
func (r *runner) allocate(ctx context.Context) (err error) {
	most := 8 // for the largest type
	for _, op := range r.Operations {
		for _, size := range r.sizes(op) {
			most = max(most, op.elements(size))
		}
	}
	if !r.Private {
		r.memory, err = r.comm.Alloc(ctx, device.U8, most)
		return err
	}
	r.memory, err = device.HostAlloc(device.U8, most)
	return err
}

// measure runs one trial.
func (r *runner) measure(ctx context.Context, op Operation, typ device.Type, size int, v variant) (Result, error) {
	length := op.fit(size/typ.Size(), r.comm.Size())
	t := newTrial(r.comm, op, r.memory.Slice(0, op.elements(length)*typ.Size()).As(typ), length, v.algorithm)
	switch {
	case v.wire != "":
		if err := t.encode(v.wire); err != nil {
			return Result{}, err
		}
	case r.Gradients && op.sized():
		t.draw()
	}
	result := Result{
		Op: op.Name, DType: typ.String(), Bytes: length * typ.Size(), Ranks: r.comm.Size(), Transport: r.Transport,
		Algorithm: r.chosen(t), Registered: r.Registered && !r.Private,
	}
	right, err := r.check(ctx, t)
	if err != nil {
		return result, err
	}
	before, err := r.stream(ctx, t)
	if err != nil {
		return result, err
	}
	clear(t.memory.Bytes())
	apart := size > apartAbove
	if result.Iterations, err = r.iterations(ctx, t, apart); err != nil {
		return result, err
	}
	if err := r.repeat(ctx, t, result.Iterations, apart); err != nil {
		return result, err
	}
	right = right && (t.renews() || zero(t.memory))
	again, err := r.check(ctx, t)
	if err != nil {
		return result, err
	}
	if result.Correct, err = r.everywhere(ctx, right && again); err != nil {
		return result, err
	}
	result.P50 = median(r.times)
	result.Best = float64(r.times[0]) / 1e3
	result.rate(op)
	after, err := r.stream(ctx, t)
	if all := append(before, after...); len(all) > 0 {
		result.Limit = float64(slices.Min(all)) / 1e3
	}
	if err == nil {
		result.Waiting, err = r.waiting(ctx, t)
	}
	return result, err
}

// chosen names the algorithm of a trial's calls.
func (r *runner) chosen(t *trial) string {
	switch {
	case t.op.SendReceive:
		return "none"
	case r.Chosen != nil:
		return r.Chosen(t.call)
	}
	return t.call.Algorithm
}

// check carries a trial out once on values that tell.
func (r *runner) check(ctx context.Context, t *trial) (bool, error) {
	t.fill()
	if err := t.run(ctx); err != nil {
		return false, err
	}
	right := t.right()
	// Peers may look at this rank's memory until they are done as well.
	return right, collective.Barrier(ctx, r.comm)
}
