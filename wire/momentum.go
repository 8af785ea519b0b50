package wire

// Momentum sets velocity = momentum * velocity + x and adds what the optimizer's
// step would be to kept: velocity, or x + momentum * velocity with nesterov. All
// are of one length.
func Momentum(kept, velocity, x []float32, momentum float32, nesterov bool) {
	velocity, x = velocity[:len(kept)], x[:len(kept)]
	for i := chosenKernels().momentum(kept, velocity, x, momentum, nesterov); i < len(kept); i++ {
		v := float32(momentum*velocity[i]) + x[i]
		velocity[i] = v
		if nesterov {
			v = x[i] + float32(momentum*v)
		}
		kept[i] += v
	}
}

// Finite reports whether all values are finite numbers.
func Finite(x []float32) bool { return chosenKernels().largest(x) < 0x7f800000 }

// largest returns the bits of the largest magnitude; as integers they have the
// order of magnitudes, and NaN above all.
func largest(src []float32) uint32 {
	most := uint32(0)
	for _, v := range src {
		most = max(most, magnitudeBits(v))
	}
	return most
}
