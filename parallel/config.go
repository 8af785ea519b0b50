package parallel

import (
	"time"

	"github.com/gradfusion/gradfusion/amp"
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/observe"
)

// FusionConfig are the settings of a GradFusion; the zero value of each field
// but Device is usable.
type FusionConfig struct {
	Device device.Device // holds masters and optimizer state; required
	// World is all ranks that share the step: the losses, the norm and what
	// else is decided about a step are agreed over it. Nil means that the model
	// is not cut, so that it is the only stage's Comm. It stays the caller's.
	World collective.Comm
	// SyncBatchNorm joins the ranks over whose micro-batches BatchNorms take their
	// statistics in a forward pass: all that hold this rank's stages, or some of
	// them. It is a Comm of its own, such as Comm.Sub gives, and stays the
	// caller's. Nil: each micro-batch has its own statistics. With it a result
	// depends on how micro-batches are dealt, so it does not go with Deterministic.
	// When ranks fail each other in a forward pass, that panics with a *nn.UseError,
	// which nn.Catch returns; Executor does so itself.
	SyncBatchNorm collective.Comm
	ThresholdMB   float64 // a bucket is closed at this size in 2^20 bytes; 0 means 16
	FirstMB       float64 // size of the first bucket, so that communication starts early; 0 means 1
	NoOverlap     bool    // start all calls after the backward pass
	// Defer lets a step end before its sums are there, which the next forward pass
	// then waits for by itself, as far as it needs them; see Complete. Buckets go in
	// the order in which they are needed. Results are the same to the bit. Defers
	// says what it does not go with.
	Defer         bool
	Deterministic bool    // sums over the canonical tree: equal bits for any layout
	FindUnused    bool    // parameters without a gradient count as zero instead of an error
	Targets       int     // of a sample, which the loss is the mean over as well: the tokens of a window; 0 means 1
	ClipNorm      float64 // largest global norm of the gradients; 0 means no clipping
	CheckEvery    int     // compare parameters over ranks every so many steps; 0 means at the start only
	// Shard keeps the optimizer's state of each element on one rank of a stage
	// only, which updates it for all; see Complete.
	Shard bool
	// LocalSGD lets the ranks train apart and averages their parameters after
	// every so many steps; see Average. 0 sums gradients in every step.
	LocalSGD int
	// Wire is how gradients are encoded on their way to other ranks.
	Wire Compression
	// Scaler is the loss scale, which is multiplied into the seeds of the losses
	// and divided out of the gradients in Step: hooks and Gradients see them
	// scaled. A step whose loss or gradients are no finite number is skipped: it
	// counts as a step, but neither parameters, optimizer nor running statistics
	// change, and the optimizer does not count it. The ranks agree on that. Nil:
	// no scale, and whatever comes out is used. All ranks have equal ones; it stays
	// the caller's.
	Scaler *amp.Scaler
	// Masters is a 16-bit type to which parameters are rounded after every
	// update; F32, the zero value, means none.
	Masters device.Type
	// Hook replaces or follows the sum of every bucket; nil for neither.
	Hook        Hook
	HookTimeout time.Duration // the longest that a hook's work may take; 0 means 30 s
	Events      *observe.Recorder
}

func (c FusionConfig) thresholdBytes() int { return megabytes(c.ThresholdMB, 16) }
func (c FusionConfig) firstBytes() int     { return megabytes(c.FirstMB, 1) }

func megabytes(mb, otherwise float64) int {
	if mb <= 0 {
		mb = otherwise
	}
	return max(int(mb*(1<<20)), 1)
}
