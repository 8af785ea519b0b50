package trainer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gradfusion/gradfusion/checkpoint"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/parallel"
)

// Prefixes of the tensors of a checkpoint and of the state's hash. What follows
// is the name of a parameter, of a buffer, or parameter/state.
const (
	prefixParam     = "param/"
	prefixBuffer    = "buffer/"
	prefixOptimizer = "optimizer/"
)

// state lists everything that training continues from, in the order of the names.
// The position in the data and every random choice are pure functions of the seed
// and the number of completed steps, so these two numbers stand for them. It is
// collective before the first step, and where the model or the optimizer is cut
// always.
func (s *session) state(ctx context.Context) ([]*section, error) {
	if err := s.fusion.Complete(ctx); err != nil {
		return nil, err
	}
	optimizer, err := s.optimizerSection(ctx)
	if err != nil {
		return nil, err
	}
	number := func(name string, value uint64) *section {
		bytes := binary.LittleEndian.AppendUint64(nil, value)
		return s.firstOnly(parallel.Named{Name: name, Shape: []int{1}, Buf: device.FromBytes(device.I64, bytes)})
	}
	sections := []*section{
		s.firstOnly(s.scalerState()...),
		s.sectionOf(prefixBuffer, parallel.States(nn.States(s.blocks))),
		s.keptSection(ctx),
		optimizer,
		s.sectionOf(prefixParam, parallel.Params(nn.Params(s.blocks))),
		number("position", uint64(s.fusion.Completed())),
		number("seed", s.cfg.Train.Seed),
	}
	for _, c := range sections {
		if err := s.list(ctx, c); err != nil {
			return nil, err
		}
	}
	return sections, nil
}

// firstOnly has what all stages have alike, which the first one shows.
func (s *session) firstOnly(tensors ...parallel.Named) *section {
	if s.mesh.At.Pipeline > 0 {
		tensors = nil
	}
	return s.sectionOf("", tensors)
}

func (s *session) optimizerSection(ctx context.Context) (*section, error) {
	if !s.shards {
		tensors, err := s.fusion.OptimizerState()
		return s.sectionOf(prefixOptimizer, tensors), err
	}
	layout, err := s.fusion.StateLayout(ctx)
	if err != nil {
		return nil, err
	}
	c := s.sectionOf(prefixOptimizer, layout)
	c.each = func(visit func(parallel.Named) error) error {
		return s.fusion.EachState(ctx, func(t parallel.Named) error {
			if s.isLater(t.Name) {
				return nil
			}
			return visit(t)
		})
	}
	return c, nil
}

// saver writes checkpoints on rank 0, one at a time. With checkpoint.async what
// takes the disk's time is done in the background: training goes on when the
// system has the bytes.
type saver struct {
	dir     string
	keep    int
	async   bool
	pending chan saved // the write in flight; nil: none
}

type saved struct {
	step int
	path string
	err  error
}

// newSaver also finds out whether the directory can be written to, before any
// training is done for nothing.
func newSaver(s *session) (*saver, error) {
	c := s.cfg.Checkpoint
	v := &saver{keep: c.Keep, async: c.Async}
	if s.comm.Rank() != 0 || c.Dir == "" {
		return v, nil
	}
	v.dir = c.Dir
	if err := checkpoint.Prepare(c.Dir); err != nil {
		return nil, s.cfg.Errorf("checkpoint.dir", "checkpoint.dir cannot be written to: %v", err)
	}
	return v, nil
}

// save starts to write the present state; a failure of the write before is
// returned here.
func (v *saver) save(ctx context.Context, s *session) error {
	if s.cfg.Checkpoint.Dir != "" {
		if err := s.fusion.AverageState(ctx); err != nil {
			return err
		}
	}
	if s.cfg.Checkpoint.Dir == "" || v.dir == "" && !s.savesTogether() {
		return nil
	}
	start := s.job.Events.Now()
	if err := v.wait(s); err != nil {
		return err
	}
	sections, err := s.state(ctx)
	if err != nil {
		return err
	}
	if v.dir == "" { // rank 0 writes
		return s.fill(ctx, sections, func(string, []byte) error { return nil })
	}
	step := s.fusion.Completed()
	w, err := checkpoint.Create(v.dir, step, s.layoutOf(sections))
	if err != nil {
		return fmt.Errorf("writing a checkpoint: %w", err)
	}
	if err := s.fill(ctx, sections, w.Put); err != nil {
		return fmt.Errorf("writing a checkpoint: %w", errors.Join(err, w.Abort()))
	}
	done := make(chan saved, 1)
	go func() {
		path, err := w.Commit()
		if err == nil {
			err = checkpoint.Forget(v.dir, step)
		}
		if err == nil {
			_, err = checkpoint.Prune(v.dir, v.keep)
		}
		done <- saved{step, path, err}
	}()
	v.pending = done
	s.job.Events.Record(observe.Span{Kind: observe.Checkpoint, Lane: "compute", Name: "checkpoint", Start: start, End: s.job.Events.Now(), Step: step})
	if v.async && ctx.Err() == nil {
		return nil
	}
	return v.wait(s)
}

// fill puts all tensors, one after the other, into the file that rank 0 writes.
func (s *session) fill(ctx context.Context, sections []*section, put func(name string, data []byte) error) error {
	for _, c := range sections {
		err := s.visit(ctx, c, func(t parallel.Named) error { return put(c.prefix+t.Name, t.Buf.Bytes()) })
		if err != nil {
			return err
		}
	}
	return nil
}

// layoutOf is the checkpoint of listed sections, without the values.
func (s *session) layoutOf(sections []*section) checkpoint.State {
	out := checkpoint.State{Metadata: map[string]string{keySettings: strings.Join(s.settings(), "\n")}}
	for _, i := range s.identity() {
		out.Metadata[i.key] = i.value
	}
	for _, c := range sections {
		tensors := slices.Clone(c.layout)
		for _, o := range c.others {
			tensors = append(tensors, o.Named)
		}
		for _, t := range tensors {
			out.Tensors = append(out.Tensors, checkpoint.Tensor{Name: c.prefix + t.Name, Type: t.Buf.Type, Shape: t.Shape})
		}
	}
	return out
}

// wait returns when no write is in flight, with its error.
func (v *saver) wait(s *session) error {
	if v.pending == nil {
		return nil
	}
	done := <-v.pending
	v.pending = nil
	if done.err != nil {
		return fmt.Errorf("writing a checkpoint: %w", done.err)
	}
	s.emit(Event{Kind: Saved, Step: done.step, Text: done.path})
	return nil
}

// settle waits for the write in flight of a run that ends by an error, so that
// it leaves nothing half-written.
func (v *saver) settle() {
	if v.pending != nil {
		<-v.pending
		v.pending = nil
	}
}
