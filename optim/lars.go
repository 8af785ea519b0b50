package optim

import "github.com/gradfusion/gradfusion/device"

// lars is LARS (You, Gitman, Ginsburg 2017): momentum whose rate each parameter
// scales by how large it is beside its gradient,
//
//	ratio = trust * |w| / (|g| + decay*|w|)
//	m = momentum*m + lr * ratio * (g + decay*w)
//	w -= m
//
// with |.| the norm over the whole parameter and g after clipping. Biases and
// norms, which need not be small beside their gradients and begin at zero, have
// ratio 1, as has a parameter of which w or g is all zero.
type lars struct {
	store
	layers
	config Config
}

var _ Layered = (*lars)(nil)

func (o *lars) Init(dev device.Device, segments []Segment) (err error) {
	if o.store, err = newStore(dev, segments, o.config, "momentum"); err != nil {
		return err
	}
	o.layers, err = newLayers(dev, segments)
	return err
}

// Norms implements Layered; what is scaled is the gradient.
func (o *lars) Norms(_ int, segments []Segment, scale float32) (weights, updates *Norm, err error) {
	o.mustHold(segments)
	o.addWeights(segments)
	o.updates.enqueue(segments)
	return o.weights, o.updates, o.dev.Sync()
}

func (o *lars) Update(step int, segments []Segment, lr, scale float32) error {
	o.mustHold(segments)
	if err := o.complete(o, step, segments, scale); err != nil {
		return err
	}
	// Here the momentum has the rate in it, so the rate multiplies what is added.
	u := device.Update{Step: step, LR: 1, Momentum: o.config.Momentum}
	for i := range segments {
		if segments[i].Param.Frozen {
			continue
		}
		group := o.groups[i]
		rate := float64(lr*group.LRFactor) * o.ratio(i, group.WeightDecay, scale)
		u.Scale = float32(rate * float64(scale))
		u.WeightDecay = float32(rate * float64(group.WeightDecay))
		o.kernels.SGD(u, segments[i].Value(), segments[i].Grad, o.tensors[0][i])
	}
	return nil
}

func (o *lars) ratio(i int, decay, scale float32) float64 {
	weight, gradient := o.norms(i)
	gradient = float64(gradient * float64(scale))
	if !o.segments[i].Param.Decay || weight == 0 || gradient == 0 {
		return 1
	}
	return float64(o.config.Trust) * weight / (gradient + float64(float64(decay)*weight))
}
