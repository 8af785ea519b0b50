package optim

import "github.com/gradfusion/gradfusion/device"

// sgd is stochastic gradient descent, with or without momentum, as PyTorch has
// it: g += decay*w; m = momentum*m + (1-dampening)*g, m = g in the first step;
// w -= lr*m, or lr*(g + momentum*m) for Nesterov (Sutskever et al. 2013).
type sgd struct {
	store
	config   Config
	nesterov bool
}

func (o *sgd) Init(dev device.Device, segments []Segment) (err error) {
	if o.config.Momentum == 0 {
		o.store, err = newStore(dev, segments, o.config)
		return err
	}
	o.store, err = newStore(dev, segments, o.config, "momentum")
	return err
}

func (o *sgd) Update(step int, segments []Segment, lr, scale float32) error {
	return o.UpdateSome(step, segments, 0, len(segments), lr, scale)
}

// UpdateSome implements Partial.
func (o *sgd) UpdateSome(step int, segments []Segment, lo, hi int, lr, scale float32) error {
	o.mustHold(segments)
	u := device.Update{
		Step:      step,
		Scale:     scale,
		Momentum:  o.config.Momentum,
		Dampening: o.config.Dampening,
		Nesterov:  o.nesterov,
	}
	for i := lo; i < hi; i++ {
		u.LR = lr * o.groups[i].LRFactor
		u.WeightDecay = o.groups[i].WeightDecay
		var momentum device.Buf
		if u.Momentum != 0 {
			momentum = o.tensors[0][i]
		}
		for p := o.pieces(&segments[i], u.Momentum == 0 && u.WeightDecay == 0); p.next(); {
			o.kernels.SGD(u, p.of(segments[i].Value()), p.of(segments[i].Grad), p.of(momentum))
		}
	}
	return nil
}
