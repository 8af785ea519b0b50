package nntest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/nn/nntest"
)

// recorder is a testing.TB that keeps what went wrong.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// scaleOp doubles x in a way that is wrong by choice.
type scaleOp struct {
	x, y *nn.Var
	bug  string
}

func scale(t *nn.Tape, x *nn.Var, bug string) *nn.Var {
	op := nn.Record[scaleOp](t)
	op.x, op.bug = x, bug
	op.y = t.Output(x.Shape, x)
	if bug == "reads what it has not written" {
		t.Kernels().Add(op.y.Value, op.y.Value, x.Value)
		return op.y
	}
	t.Kernels().Scale(op.y.Value, x.Value, 2)
	if bug == "dirty padding" {
		op.y.Value.F32()[op.y.Value.Len-1] = 1
	}
	return op.y
}

func (op *scaleOp) BackwardInput(t *nn.Tape) {
	dy, ok := t.OutGrad(op.y)
	if !ok || !op.x.NeedsGrad() {
		return
	}
	factor := float32(2)
	if op.bug == "gradient" {
		factor = 2.001
	}
	dx, accumulate := t.GradOf(op.x)
	part := dx
	if accumulate && op.bug != "overwrites" {
		part = t.Arena().Get(device.F32, dx.Len)
		defer t.Arena().Put(part)
	}
	t.Kernels().Scale(part, dy, factor)
	if accumulate && op.bug != "overwrites" {
		t.Kernels().Add(dx, dx, part)
	}
}

func (op *scaleOp) BackwardWeight(*nn.Tape) {}

func TestChecksFindBugs(t *testing.T) {
	for bug, want := range map[string]string{
		"":                              "",
		"gradient":                      "gradient of input 0: rms error",
		"dirty padding":                 "padding element",
		"reads what it has not written": "poisoned memory",
		"overwrites":                    "used twice",
	} {
		r := &recorder{TB: t}
		nntest.Check(r, naive.New(), func() nntest.Case {
			return nntest.Case{Inputs: []nn.Shape{nn.Image(2, 3, 2, 2)},
				Apply: func(t *nn.Tape, in []*nn.Var) *nn.Var { return scale(t, in[0], bug) }}
		})
		if want == "" {
			require.Empty(t, r.errors)
			continue
		}
		require.Contains(t, strings.Join(r.errors, "\n"), want, bug)
	}
}
