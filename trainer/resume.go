package trainer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gradfusion/gradfusion/checkpoint"
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/parallel"
)

// resumption is what rank 0 found to continue from; the other ranks that hold the
// same parameters know the step only and take the rest from rank 0.
type resumption struct {
	step    int
	path    string
	tensors map[string]checkpoint.Tensor // rank 0; all ranks where the model is cut over them
}

// load finds the newest good checkpoint on rank 0, copies parameters and buffers
// from it, and tells all ranks the step. It returns nil when the job starts
// afresh.
func (s *session) load(ctx context.Context) (*resumption, error) {
	if !s.job.Resume {
		return nil, s.warnOfEarlier()
	}
	var r *resumption
	var failed error
	if s.comm.Rank() == 0 {
		r, failed = s.find()
	}
	step, err := s.agree(ctx, r, failed)
	if err != nil || step < 0 {
		return nil, err
	}
	if r == nil {
		r = &resumption{step: step}
	}
	if s.cutOverRanks() {
		if err := r.share(ctx, s.comm); err != nil {
			return nil, fmt.Errorf("resuming: %w", err)
		}
		return r, r.copyModel(s.blocks)
	}
	return r, nil
}

// share gives every rank what rank 0 has read, for models of which each holds
// another part.
func (r *resumption) share(ctx context.Context, comm collective.Comm) error {
	var own strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.tensors)) {
		fmt.Fprintln(&own, len(r.tensors[name].Data), name)
	}
	lists, err := collective.GatherBytes(ctx, comm, []byte(own.String()), "names of the checkpoint's tensors")
	if err != nil {
		return err
	}
	if r.tensors == nil {
		r.tensors = map[string]checkpoint.Tensor{}
	}
	for line := range strings.Lines(string(lists[0])) {
		length, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		n, err := strconv.Atoi(length)
		if err != nil {
			return fmt.Errorf("a tensor of %s bytes: %w", length, err)
		}
		t, known := r.tensors[name]
		if !known {
			t = checkpoint.Tensor{Name: name, Data: make([]byte, n)}
			r.tensors[name] = t
		}
		call := collective.Call{Kind: plan.Broadcast, In: device.FromU8(t.Data), Label: name}
		if err := comm.Start(ctx, call).Wait(ctx); err != nil {
			return err
		}
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

// find reads the newest good checkpoint into parameters and buffers.
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
	state, err := checkpoint.Read(newest.Path)
	if err != nil {
		return nil, err
	}
	if err := s.matches(newest.Path, state.Metadata); err != nil {
		return nil, err
	}
	r := &resumption{path: newest.Path, tensors: map[string]checkpoint.Tensor{}}
	for _, t := range state.Tensors {
		r.tensors[t.Name] = t
	}
	position, err := r.bytes("position", 8)
	if err != nil {
		return nil, err
	}
	r.step = int(binary.LittleEndian.Uint64(position))
	if err := r.copyModel(s.blocks); err != nil {
		return nil, err
	}
	return r, r.onlyOf(s.model.Blocks)
}

// onlyOf refuses a checkpoint with more parameters than the whole model has:
// that of a network of more layers holds all that one of fewer asks for.
func (r *resumption) onlyOf(blocks []nn.Block) error {
	known := map[string]bool{}
	for _, p := range nn.Params(blocks) {
		known[prefixParam+p.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(r.tensors)) {
		if strings.HasPrefix(name, prefixParam) && !known[name] {
			return fmt.Errorf("checkpoint %s is of another network: it has %s, which this one has not; continue with the same one, or start afresh in another checkpoint.dir",
				r.path, strings.TrimPrefix(name, prefixParam))
		}
	}
	return nil
}

// matches refuses a checkpoint that this run cannot continue.
func (s *session) matches(path string, metadata map[string]string) error {
	for _, i := range s.identity() {
		got, known := metadata[i.key]
		switch {
		case got == i.value:
		case !known && (i.key == keyTraining || i.key == keyTest): // written before they were kept
		case i.key == keyTest:
			s.warnings = append(s.warnings, fmt.Sprintf("the test set has changed since %s was written, so evaluations before and after it do not compare: it was %s, it is %s", path, got, i.value))
		case i.key == keyTraining:
			return fmt.Errorf("the training set has changed since checkpoint %s was written: it was %s, it is %s; continue with the data that it was trained on, or start afresh in another checkpoint.dir", path, got, i.value)
		case i.key == keySteps:
			s.warnings = append(s.warnings, fmt.Sprintf("the run that wrote %s was to have %s steps, this one has %s: the learning rate follows the new number", path, got, i.value))
		default:
			return fmt.Errorf("checkpoint %s is of a run with %s %s, this one has %s: continue with the same setting, or start afresh in another checkpoint.dir", path, i.key, got, i.value)
		}
	}
	changes := changed(metadata[keySettings], s.settings())
	for _, c := range changes {
		if strings.HasPrefix(c, "model.heads ") { // all other networks have weights of other shapes
			return fmt.Errorf("checkpoint %s is of another network: %s; continue with the same one, or start afresh in another checkpoint.dir", path, c)
		}
	}
	if len(changes) > 0 {
		s.warnings = append(s.warnings, fmt.Sprintf("the run that wrote %s had other settings, so this one continues it differently: %s", path, strings.Join(changes, ", ")))
	}
	return nil
}

// changed lists settings that are not as they were. What only says how long and
// how often, or computes the same, is no change.
func changed(then string, now []string) []string {
	old := map[string]string{}
	for line := range strings.Lines(then) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		old[key] = value
	}
	var out []string
	for _, line := range now {
		key, value, _ := strings.Cut(line, ": ")
		switch was, known := old[key]; {
		case !known || was == value, key == "train.epochs", key == "train.steps", key == "train.eval_every", key == "observe.trace", key == "model.recompute", key == "parallel.recompute", key == "launch.placement":
		default:
			out = append(out, fmt.Sprintf("%s is %s, was %s", key, value, was))
		}
	}
	return out
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
		b, err := r.bytes(name, to.Size())
		copy(to.Bytes(), b)
		return err
	}
	whole := device.FromF32(make([]float32, part.WholeLen()))
	b, err := r.bytes(name, whole.Size())
	if err != nil {
		return err
	}
	copy(whole.Bytes(), b)
	part.Take(to.F32(), whole.F32())
	return nil
}

func (r *resumption) bytes(name string, size int) ([]byte, error) {
	t, ok := r.tensors[name]
	if !ok {
		return nil, fmt.Errorf("checkpoint %s has no tensor %s", r.path, name)
	}
	if len(t.Data) != size {
		return nil, fmt.Errorf("checkpoint %s: tensor %s has %d bytes, the model needs %d", r.path, name, len(t.Data), size)
	}
	return t.Data, nil
}

// resume sets the step and has the optimizer's state filled when it is there:
// by rank 0 from the checkpoint, on the others by a broadcast.
func (s *session) resume(ctx context.Context, r *resumption) error {
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
