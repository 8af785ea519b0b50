package trainer

import (
	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// fitsMemory refuses a network or micro-batches that this host cannot hold,
// before the runtime or the system ends the process over it; have is the host's
// memory in bytes, 0 where it is not known. It counts the least that training
// takes for all ranks of this host, in float32: weights and gradients, the
// samples of the micro-batches that are loaded, and activations, in bytes a
// sample, 0 before they are known.
func (s *session) fitsMemory(have, activations float64) error {
	const float = 4
	parameters := 0.0 // the product of two widths may be beyond an int
	for _, p := range nn.Params(s.blocks) {
		size := 1.0
		for _, n := range p.Shape {
			size *= float64(n)
		}
		parameters += size
	}
	ranks, loaded := float64(localRanks(s.comm)), float64(max(s.cfg.Data.Workers, 1)+2) // as data.LoaderConfig has it
	weights := 2 * float * parameters * ranks
	size := s.training.Sizes()
	samples := (loaded*float*float64(size.X+2*size.Tokens) + activations) * float64(s.micro) * ranks
	switch {
	case have == 0 || weights+samples <= have:
		return nil
	case weights > samples:
		return s.cfg.Errorf("model.name", "%s as configured has %.3g parameters; weights and gradients of the ranks on this host take %s, and there are %s",
			s.model.Name, parameters, amount(weights), amount(have))
	}
	return s.cfg.Errorf("train.micro_batch", "micro-batches of %s take at least %s for the ranks on this host, and there are %s; a smaller train.micro_batch accumulates gradients instead",
		config.Plural(s.micro, "sample"), amount(samples), amount(have))
}

// activations returns how many bytes a forward pass keeps of each sample, in the
// smallest stage, and how many all micro-batches that are held at once do: what
// a second sample adds to a first one. The passes are those of an evaluation,
// which leave the model as it is, but forget nothing; their kernels do nothing.
// The parameters must have memory.
func (s *session) activations() (least, held float64, err error) {
	if s.isCut() {
		least, held = s.stageActivations()
		return least, held, nil
	}
	measure := func() (err error) {
		defer nn.Catch(&err)
		one := s.keeps(1)
		least = float64(s.keeps(2) - one)
		return nil
	}
	if s.partners != nil { // some of whom may not measure
		err = s.partners.Silent(measure)
	} else {
		err = measure()
	}
	return least, least, err
}

// keeps is what a forward pass of n samples holds at its end or, with
// model.recompute, when the backward pass has made the largest block again.
func (s *session) keeps(n int) int {
	size, t := s.training.Sizes(), nn.NewTape(sizing{s.device})
	defer t.Arena().Close()
	t.Begin(nn.Pass{Precision: s.precision()})
	input, shape := s.input(data.Samples{X: make([]float32, n*size.X), Tokens: make([]int32, n*size.Tokens)}, n)
	x := t.List(t.Input(input, shape, false))
	outputs, inside := 0, 0
	for _, b := range s.blocks {
		before := t.Arena().Peak()
		x = b.Forward(t, x)
		made, given := t.Arena().Peak()-before, 0
		for _, y := range x {
			given += y.Value.Size()
		}
		given = min(given, made)
		outputs, inside = outputs+given, max(inside, made-given)
	}
	if s.recomputes() {
		return outputs + inside
	}
	return t.Arena().Peak()
}

func (s *session) recomputes() bool { return s.cfg.Model.Recompute == "blocks" }
