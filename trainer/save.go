package trainer

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
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

// state lists everything that training continues from. The position in the data
// and every random choice are pure functions of the seed and the number of
// completed steps, so these two numbers stand for them; params is what s.params
// returned. It is collective before the first step, and with a sharded optimizer
// or a cut model always. Only rank 0 has all of a model that is cut in stages.
func (s *session) state(ctx context.Context, params []parallel.Named) ([]parallel.Named, error) {
	out, err := s.stateBeside(ctx, params)
	if err != nil {
		return nil, err
	}
	optimizer, err := s.fusion.OptimizerState()
	optimizer, err = s.whole(ctx, optimizer, err)
	return appendNamed(out, prefixOptimizer, optimizer), err
}

func appendNamed(to []parallel.Named, prefix string, tensors []parallel.Named) []parallel.Named {
	for _, t := range tensors {
		t.Name = prefix + t.Name
		to = append(to, t)
	}
	return to
}

// stateBeside is the state beside the optimizer's.
func (s *session) stateBeside(ctx context.Context, params []parallel.Named) ([]parallel.Named, error) {
	position := binary.LittleEndian.AppendUint64(nil, uint64(s.fusion.Completed()))
	seed := binary.LittleEndian.AppendUint64(nil, s.cfg.Train.Seed)
	out := []parallel.Named{
		{Name: "position", Shape: []int{1}, Buf: device.FromBytes(device.I64, position)},
		{Name: "seed", Shape: []int{1}, Buf: device.FromBytes(device.I64, seed)},
	}
	out = append(out, s.scalerState()...)
	out = appendNamed(out, prefixParam, params)
	buffers, err := s.fromStages(ctx, parallel.States(nn.States(s.blocks)))
	if err != nil {
		return nil, err
	}
	return appendNamed(out, prefixBuffer, buffers), nil
}

// params lists the parameters, whole; it is collective, like state.
func (s *session) params(ctx context.Context) ([]parallel.Named, error) {
	if err := s.fusion.Complete(ctx); err != nil {
		return nil, err
	}
	return s.whole(ctx, parallel.Params(nn.Params(s.blocks)), nil)
}

// saver writes checkpoints on rank 0, one at a time, in the background when
// checkpoint.async is set.
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
	if v.dir == "" {
		return s.contribute(ctx)
	}
	start := s.job.Events.Now()
	if err := v.wait(s); err != nil {
		return err
	}
	state, err := s.snapshot(ctx)
	if err != nil {
		return err
	}
	step, done := s.fusion.Completed(), make(chan saved, 1)
	go func() {
		path, err := checkpoint.Write(v.dir, step, state)
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

// contribute is the part of the other ranks in a checkpoint that rank 0 writes:
// what they hold of a sharded optimizer, and of a model that is cut, and what
// they keep.
func (s *session) contribute(ctx context.Context) error {
	if s.cfg.Checkpoint.Dir == "" {
		return nil
	}
	switch {
	case s.streams():
		if err := s.fusion.EachState(ctx, func(parallel.Named) error { return nil }); err != nil {
			return err
		}
	case s.cutOverRanks():
		params, err := s.params(ctx)
		if err != nil {
			return err
		}
		if _, err := s.state(ctx, params); err != nil {
			return err
		}
	}
	_, err := s.kept(ctx)
	return err
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

// snapshot copies the state, so that training goes on while it is written.
func (s *session) snapshot(ctx context.Context) (checkpoint.State, error) {
	params, err := s.params(ctx)
	if err != nil {
		return checkpoint.State{}, err
	}
	tensors, err := s.state(ctx, params)
	if err != nil {
		return checkpoint.State{}, err
	}
	kept, err := s.kept(ctx)
	if err != nil {
		return checkpoint.State{}, err
	}
	tensors = append(tensors, kept...)
	out := checkpoint.State{Metadata: map[string]string{}}
	for _, i := range s.identity() {
		out.Metadata[i.key] = i.value
	}
	out.Metadata[keySettings] = strings.Join(s.settings(), "\n")
	for _, t := range tensors {
		out.Tensors = append(out.Tensors, checkpoint.Tensor{Name: t.Name, Type: t.Buf.Type, Shape: t.Shape, Data: append([]byte(nil), t.Buf.Bytes()...)})
	}
	return out, nil
}

// identity is what should be equal for a run to be continued to the same result.
func (s *session) identity() []setting {
	c := s.cfg
	return []setting{
		{"model", s.model.Name},
		{"optimizer", c.Optim.Name},
		{"data", s.data.Name},
		{"batch", strconv.Itoa(c.Data.Batch)},
		{"seed", strconv.FormatUint(c.Train.Seed, 10)},
		{keyTraining, s.contents[0]},
		{keyTest, s.contents[1]},
		{keySteps, strconv.Itoa(s.total)},
	}
}

// setting is an entry of a checkpoint's metadata.
type setting struct{ key, value string }

// Keys of the metadata: what the data were, the steps of the run, and its
// settings, a line each.
const (
	keyTraining = "training set"
	keyTest     = "test set"
	keySteps    = "steps"
	keySettings = "settings"
)
