package trainer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/gradfusion/gradfusion/amp"
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/parallel"
)

// precision is what every pass of the model computes in.
func (s *session) precision() nn.Precision { return s.cfg.AMP.Settings().Precision() }

// update ends a step.
func (s *session) update(index int, o parallel.Outcome, rate float32) error {
	err := s.fusion.Step(rate)
	if errors.Is(err, amp.ErrOverflow) {
		return fmt.Errorf("%w: %w, the last time %s; a smaller optim.lr, optim.clip_norm or amp.type: bf16 may help", ErrDiverged, err, where(s.fusion.Overflow()))
	}
	if err == nil && o.Skipped {
		s.emit(Event{Kind: Warned, Text: skipped(s.fusion.Overflow())})
	}
	return err
}

// diverged explains a loss that is no finite number.
func diverged(err error) error {
	if e := (*parallel.LossError)(nil); errors.As(err, &e) {
		return fmt.Errorf("%w: %w; a smaller optim.lr, or optim.clip_norm, may help", ErrDiverged, err)
	}
	return err
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// skipped tells of an overflow.
func skipped(o parallel.Overflow) string {
	text := fmt.Sprintf("step %d is skipped: at a loss scale of %g %s", o.Step, o.Scale, where(o))
	if o.Stuck > 0 {
		return fmt.Sprintf("%s; the scale stays as it is (skipped in a row so far: %d)", text, o.Stuck)
	}
	return fmt.Sprintf("%s; the next step has %g", text, o.Next)
}

// where names what overflowed.
func where(o parallel.Overflow) string {
	switch {
	case o.Rank < 0:
		return "the loss was no finite number"
	case o.Param == "":
		return fmt.Sprintf("a gradient of rank %d overflowed", o.Rank)
	}
	return fmt.Sprintf("the gradient of %s (layer %s, %s) of rank %d overflowed", o.Param, o.Layer, o.Bucket, o.Rank)
}

// The state of the loss scale in a checkpoint and in the state's hash.
const scalerTensor = "amp/scaler"

// scalerState is nothing at amp.level: O0.
func (s *session) scalerState() []parallel.Named {
	if s.scaler == nil {
		return nil
	}
	state := s.scaler.State()
	var b []byte
	for _, v := range state {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return []parallel.Named{{Name: scalerTensor, Shape: []int{len(state)}, Buf: device.FromBytes(device.F64, b)}}
}

// resumeScaler continues on all ranks from what scalerState gave on rank 0. A
// checkpoint of a training without a loss scale has nothing to continue from.
func (s *session) resumeScaler(ctx context.Context, r *resumption) error {
	if s.scaler == nil {
		return nil
	}
	var state [amp.StateLen]float64
	told := make([]float64, 1+len(state)) // whether there is one, and it
	if _, ok := r.size(scalerTensor); ok && s.comm.Rank() == 0 {
		b := make([]byte, 8*len(state))
		if err := r.read(scalerTensor, b); err != nil {
			return err
		}
		told[0] = 1
		for i := range state {
			told[1+i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		}
	}
	call := collective.Call{Kind: plan.Broadcast, In: device.FromF64(told), Label: "loss scale"}
	if err := s.comm.Start(ctx, call).Wait(ctx); err != nil || told[0] == 0 {
		return err
	}
	copy(state[:], told[1:])
	if err := s.scaler.Restore(state); err != nil {
		return fmt.Errorf("checkpoint of step %d: %w", r.step, err)
	}
	return nil
}
