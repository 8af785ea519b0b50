package optim

import "github.com/gradfusion/gradfusion/device"

// rmsProp is RMSProp (Tieleman, Hinton 2012), not centred, as PyTorch has it: g
// += decay*w; s = alpha*s + (1-alpha)*g*g; g /= sqrt(s) + epsilon; with momentum
// m = momentum*m + g; w -= lr * (g or m).
type rmsProp struct {
	store
	config Config
}

func (o *rmsProp) Init(dev device.Device, segments []Segment) (err error) {
	names := []string{"square"}
	if o.config.Momentum != 0 {
		names = append(names, "momentum")
	}
	o.store, err = newStore(dev, segments, o.config, names...)
	return err
}

func (o *rmsProp) Update(step int, segments []Segment, lr, scale float32) error {
	return o.UpdateSome(step, segments, 0, len(segments), lr, scale)
}

// UpdateSome implements Partial.
func (o *rmsProp) UpdateSome(step int, segments []Segment, lo, hi int, lr, scale float32) error {
	o.mustHold(segments)
	u := device.Update{Step: step, Scale: scale, Beta2: o.config.Alpha, Epsilon: o.config.Epsilon, Momentum: o.config.Momentum}
	for i := lo; i < hi; i++ {
		u.LR = lr * o.groups[i].LRFactor
		u.WeightDecay = o.groups[i].WeightDecay
		var momentum device.Buf
		if u.Momentum != 0 {
			momentum = o.tensors[1][i]
		}
		for p := o.pieces(&segments[i], false); p.next(); {
			o.kernels.RMSProp(u, p.of(segments[i].Value()), p.of(segments[i].Grad), p.of(o.tensors[0][i]), p.of(momentum))
		}
	}
	return nil
}
