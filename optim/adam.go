package optim

import "github.com/gradfusion/gradfusion/device"

// adam is Adam (Kingma, Ba 2015), bias-corrected, as PyTorch has it; decoupled
// makes it AdamW (Loshchilov, Hutter 2019), whose decay acts on the weights and
// does not pass through the moments.
type adam struct {
	store
	config    Config
	decoupled bool
}

func (o *adam) Init(dev device.Device, segments []Segment) (err error) {
	o.store, err = newStore(dev, segments, o.config, "mean", "variance")
	return err
}

func (o *adam) Update(step int, segments []Segment, lr, scale float32) error {
	return o.UpdateSome(step, segments, 0, len(segments), lr, scale)
}

// UpdateSome implements Partial.
func (o *adam) UpdateSome(step int, segments []Segment, lo, hi int, lr, scale float32) error {
	o.mustHold(segments)
	u := device.Update{
		Step:      step,
		Scale:     scale,
		Beta1:     o.config.Beta1,
		Beta2:     o.config.Beta2,
		Epsilon:   o.config.Epsilon,
		Decoupled: o.decoupled,
	}
	for i := lo; i < hi; i++ {
		u.LR = lr * o.groups[i].LRFactor
		u.WeightDecay = o.groups[i].WeightDecay
		for p := o.pieces(&segments[i], false); p.next(); {
			o.kernels.Adam(u, p.of(segments[i].Value()), p.of(segments[i].Grad), p.of(o.tensors[0][i]), p.of(o.tensors[1][i]))
		}
	}
	return nil
}
