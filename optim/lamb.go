package optim

import "github.com/gradfusion/gradfusion/device"

// lamb is LAMB (You et al. 2020): Adam with decoupled decay whose rate each
// parameter scales by how large it is beside its update,
//
//	m = beta1*m + (1-beta1)*g        v = beta2*v + (1-beta2)*g*g
//	d = m/(1-beta1^t) / (sqrt(v/(1-beta2^t)) + epsilon) + decay*w
//	w -= lr * |w|/|d| * d
//
// with |.| the norm over the whole parameter. Biases and norms have ratio 1, as
// has a parameter of which w or d is all zero.
type lamb struct {
	store
	layers
	config Config
}

var _ Layered = (*lamb)(nil)

func (o *lamb) Init(dev device.Device, segments []Segment) (err error) {
	if o.store, err = newStore(dev, segments, o.config, "mean", "variance"); err != nil {
		return err
	}
	o.layers, err = newLayers(dev, segments)
	return err
}

func (o *lamb) numbers(step int, scale float32) device.Update {
	return device.Update{Step: step, Scale: scale, Beta1: o.config.Beta1, Beta2: o.config.Beta2, Epsilon: o.config.Epsilon}
}

// Norms implements Layered: it advances the moments; what is scaled is d.
func (o *lamb) Norms(step int, segments []Segment, scale float32) (weights, updates *Norm, err error) {
	o.mustHold(segments)
	o.addWeights(segments)
	u := o.numbers(step, scale)
	for i := range segments {
		if segments[i].Param.Frozen {
			continue
		}
		u.WeightDecay = o.groups[i].WeightDecay
		o.kernels.LAMBMoments(u, o.updates.of(i), segments[i].Value(), segments[i].Grad, o.tensors[0][i], o.tensors[1][i])
	}
	return o.weights, o.updates, o.dev.Sync()
}

func (o *lamb) Update(step int, segments []Segment, lr, scale float32) error {
	o.mustHold(segments)
	if err := o.complete(o, step, segments, scale); err != nil {
		return err
	}
	u := o.numbers(step, scale)
	for i := range segments {
		if segments[i].Param.Frozen {
			continue
		}
		u.WeightDecay = o.groups[i].WeightDecay
		u.LR = float32(float64(lr*o.groups[i].LRFactor) * o.ratio(i))
		o.kernels.LAMBStep(u, segments[i].Value(), o.tensors[0][i], o.tensors[1][i])
	}
	return nil
}

func (o *lamb) ratio(i int) float64 {
	weight, update := o.norms(i)
	if !o.segments[i].Param.Decay || weight == 0 || update == 0 {
		return 1
	}
	return weight / update
}
