package parallel

import (
	"context"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// Batch is the samples of one micro-batch.
type Batch struct {
	Input  device.Buf // read by the first stage
	Shape  nn.Shape   // of Input
	Target device.Buf // read by the last stage
	Done   func()     // gives the memory back; called once, nil for nothing
}

// Feed gives a micro-batch's samples. It is called once for each micro-batch of
// the run, in their order, on ranks that hold the first or the last stage; the
// other part of a Batch may be missing. Several may be out at one time, as the
// schedule has it.
type Feed func(ctx context.Context, m Micro) (Batch, error)

// Loss puts a model's loss on the tape.
type Loss func(t *nn.Tape, out []*nn.Var, b Batch) *nn.Var

// feeding holds batches from Feed until all stages that read them are done.
type feeding struct {
	readers int // stages of this rank that read samples
	feed    Feed
	held    []heldBatch // by micro-batch of the run
	fed     int
}

type heldBatch struct {
	batch   Batch
	readers int // that are not done
}

func (f *feeding) begin(feed Feed, micros int) {
	f.feed, f.fed = feed, 0
	for len(f.held) < micros {
		f.held = append(f.held, heldBatch{})
	}
}

// get returns the samples of a micro-batch, having asked for those before it.
func (f *feeding) get(ctx context.Context, micros []Micro, micro int) (Batch, error) {
	for f.fed <= micro {
		b, err := f.feed(ctx, micros[f.fed])
		if err != nil {
			return Batch{}, err
		}
		f.held[f.fed] = heldBatch{b, f.readers}
		f.fed++
	}
	return f.held[micro].batch, nil
}

// done says that one stage needs the samples no more.
func (f *feeding) done(micro int) {
	h := &f.held[micro]
	if h.readers--; h.readers > 0 {
		return
	}
	if h.batch.Done != nil {
		h.batch.Done()
	}
	h.batch = Batch{}
}
