package optim

import "github.com/gradfusion/gradfusion/device"

// adaGrad is AdaGrad (Duchi et al. 2011) as PyTorch has it, without decay of the
// rate: g += decay*w; s += g*g; w -= lr * g / (sqrt(s) + epsilon).
type adaGrad struct {
	store
	config Config
}

func (o *adaGrad) Init(dev device.Device, segments []Segment) (err error) {
	o.store, err = newStore(dev, segments, o.config, "sum")
	return err
}

func (o *adaGrad) Update(step int, segments []Segment, lr, scale float32) error {
	return o.UpdateSome(step, segments, 0, len(segments), lr, scale)
}

// UpdateSome implements Partial.
func (o *adaGrad) UpdateSome(step int, segments []Segment, lo, hi int, lr, scale float32) error {
	o.mustHold(segments)
	u := device.Update{Step: step, Scale: scale, Epsilon: o.config.Epsilon}
	for i := lo; i < hi; i++ {
		u.LR = lr * o.groups[i].LRFactor
		u.WeightDecay = o.groups[i].WeightDecay
		for p := o.pieces(&segments[i], u.WeightDecay == 0); p.next(); {
			o.kernels.AdaGrad(u, p.of(segments[i].Value()), p.of(segments[i].Grad), p.of(o.tensors[0][i]))
		}
	}
	return nil
}
