package trainer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/gradfusion/gradfusion/checkpoint"
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/parallel"
)

// resumption is what a rank has of the checkpoint that it continues from: rank 0
// the file, others the step and, where the model is cut over them, the file as well
// or what they need of it.
type resumption struct {
	step    int
	path    string
	file    *checkpoint.Reader
	tensors map[string][]byte // of a rank that cannot read the file
}

// load finds the newest good checkpoint on rank 0, copies parameters and buffers
// from it, and tells all ranks the step.
func (s *session) load(ctx context.Context) error {
	if !s.job.Resume {
		return s.warnOfEarlier()
	}
	var failed error
	if s.comm.Rank() == 0 {
		s.resumption, failed = s.find()
	}
	step, err := s.agree(ctx, s.resumption, failed)
	if err != nil || step < 0 {
		return err
	}
	if s.resumption == nil {
		s.resumption = &resumption{step: step}
	}
	if s.cutOverRanks() {
		if err := s.share(ctx, s.resumption); err != nil {
			return fmt.Errorf("resuming: %w", err)
		}
	}
	if s.cutOverRanks() || s.comm.Rank() == 0 { // GradFusion copies to the others
		return s.resumption.copyModel(s.blocks)
	}
	return nil
}

// warnOfEarlier tells of checkpoints that a run which starts afresh replaces.
func (s *session) warnOfEarlier() error {
	if s.saver.dir == "" {
		return nil
	}
	earlier, err := checkpoint.List(s.saver.dir)
	if err == nil && len(earlier) > 0 {
		s.warnings = append(s.warnings, fmt.Sprintf("%s holds checkpoints of an earlier run, up to step %d, which those of this one replace; -resume would have continued it",
			s.saver.dir, earlier[len(earlier)-1].Step))
	}
	return err
}

// agree broadcasts rank 0's step: -1 for none, -2 for a failure.
func (s *session) agree(ctx context.Context, r *resumption, failed error) (int, error) {
	step := []int64{-1}
	if failed != nil {
		step[0] = -2
	} else if r != nil {
		step[0] = int64(r.step)
	}
	call := collective.Call{Kind: plan.Broadcast, In: device.FromI64(step), Label: "step of the checkpoint"}
	err := s.comm.Start(ctx, call).Wait(ctx)
	switch {
	case failed != nil:
		return 0, failed
	case err != nil:
		return 0, fmt.Errorf("resuming: %w", err)
	case step[0] == -2:
		return 0, fmt.Errorf("rank 0 could not continue from the checkpoint: %w", ErrElsewhere)
	}
	return int(step[0]), nil
}

// find opens the newest good checkpoint.
func (s *session) find() (*resumption, error) {
	dir := s.cfg.Checkpoint.Dir
	if dir == "" {
		return nil, errors.New("-resume needs checkpoint.dir: set it to the directory of the run to continue")
	}
	newest, skipped, err := checkpoint.Latest(dir)
	if err != nil {
		return nil, err
	}
	for _, bad := range skipped {
		s.warnings = append(s.warnings, fmt.Sprintf("checkpoint %s is skipped: %v", bad.Path, bad.Err))
	}
	if newest.Path == "" {
		return nil, nil
	}
	r := &resumption{path: newest.Path}
	if r.file, err = checkpoint.Open(newest.Path); err != nil {
		return nil, err
	}
	if err := s.fitsCheckpoint(r); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// fitsCheckpoint refuses a checkpoint that this run cannot continue, and reads its
// step.
func (s *session) fitsCheckpoint(r *resumption) error {
	if err := s.matches(r.path, r.file.Metadata); err != nil {
		return err
	}
	position := make([]byte, 8)
	if err := r.read("position", position); err != nil {
		return err
	}
	r.step = int(binary.LittleEndian.Uint64(position))
	return s.hasModel(r)
}

// hasModel refuses a checkpoint of another network, or of another optimizer.
func (s *session) hasModel(r *resumption) error {
	states, err := stateNames(s.withoutMomentum(s.cfg.Optim.Optimizer()), s.device)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, p := range nn.Params(s.model.Blocks) {
		name, elements := prefixParam+p.Name, p.Len()
		if p.Part != nil {
			elements = p.Part.WholeLen()
		}
		known[name] = true
		size, has := r.file.Size(name)
		if !has || size != 4*elements {
			return s.cfg.Errorf("model.name", "checkpoint %s is of another network: it has %d numbers for %s, this one has %d; continue with the same one, or start afresh in another checkpoint.dir",
				r.path, size/4, p.Name, elements)
		}
		if p.Frozen { // the optimizer keeps nothing of it
			continue
		}
		for _, state := range states {
			if _, has := r.file.Size(prefixOptimizer + parallel.StateName(p.Name, state)); !has {
				return s.cfg.Errorf("optim.name", "checkpoint %s has no %s of %s, from which this optimizer would go on: it was written with other settings of optim or fusion.wire; continue with the same, or start afresh in another checkpoint.dir",
					r.path, state, p.Name)
			}
		}
	}
	// That of a network of more layers holds all that one of fewer asks for.
	for _, t := range r.file.Tensors {
		if name, is := strings.CutPrefix(t.Name, prefixParam); is && !known[t.Name] {
			return s.cfg.Errorf("model.name", "checkpoint %s is of another network: it has %s, which this one has not; continue with the same one, or start afresh in another checkpoint.dir",
				r.path, name)
		}
	}
	return nil
}

func (r *resumption) copyModel(blocks []nn.Block) error {
	for _, p := range nn.Params(blocks) {
		if err := r.fill(prefixParam+p.Name, p.Value, p.Part); err != nil {
			return err
		}
	}
	for _, b := range parallel.States(nn.States(blocks)) {
		if err := r.fill(prefixBuffer+b.Name, b.Buf, nil); err != nil {
			return err
		}
	}
	return nil
}

// fill copies a tensor, or the part of it that a rank has.
func (r *resumption) fill(name string, to device.Buf, part *nn.Part) error {
	if part == nil {
		return r.read(name, to.Bytes())
	}
	whole := device.FromF32(make([]float32, part.WholeLen()))
	if err := r.read(name, whole.Bytes()); err != nil {
		return err
	}
	part.Take(to.F32(), whole.F32())
	return nil
}

// size returns the bytes of a tensor, and whether there is one.
func (r *resumption) size(name string) (int, bool) {
	if r.file != nil {
		return r.file.Size(name)
	}
	b, has := r.tensors[name]
	return len(b), has
}

// read fills b with a tensor.
func (r *resumption) read(name string, b []byte) error {
	switch n, has := r.size(name); {
	case !has:
		return fmt.Errorf("checkpoint %s has no tensor %s", r.path, name)
	case n != len(b):
		return fmt.Errorf("checkpoint %s: tensor %s has %d bytes, the model needs %d", r.path, name, n, len(b))
	case r.file != nil:
		return r.file.Read(name, b)
	}
	copy(b, r.tensors[name])
	return nil
}

func (r *resumption) close() error {
	if r == nil || r.file == nil {
		return nil
	}
	return r.file.Close()
}

// release gives back what was read for the first step, which has all of it: the
// file, which may have been replaced since, would take its room on the disk for as
// long as the training goes.
func (s *session) release() error {
	err := s.resumption.close()
	s.resumption = nil
	return err
}

// resume sets the step and has the optimizer's state filled when it is there:
// by rank 0 from the checkpoint, on the others by a broadcast.
func (s *session) resume(ctx context.Context) error {
	r := s.resumption
	if r == nil {
		if s.job.Resume && s.comm.Rank() == 0 {
			s.warnings = append(s.warnings, fmt.Sprintf("no checkpoint in %s: starting afresh", s.cfg.Checkpoint.Dir))
		}
		return nil
	}
	s.resumed = r.path
	if err := s.resumeScaler(ctx, r); err != nil {
		return err
	}
	s.resumeKept(ctx, r)
	parts := s.tensorParts()
	return s.fusion.Restore(r.step, func(param, name string, to device.Buf) error {
		if s.comm.Rank() == 0 || s.cutOverRanks() {
			if err := r.fill(prefixOptimizer+parallel.StateName(param, name), to, parts[param]); err != nil {
				return err
			}
		}
		if s.cutOverRanks() {
			return nil
		}
		call := collective.Call{Kind: plan.Broadcast, In: to, Label: "state of " + param}
		return s.comm.Start(ctx, call).Wait(ctx)
	})
}
