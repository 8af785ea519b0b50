// Package amp is mixed precision: which values of a training have 16 bits, and
// the scale of the loss that keeps small gradients above the smallest 16-bit
// number.
//
// Levels are those of NVIDIA's apex: O0 is float32, O1 computes products on 16
// bits, O2 also keeps activations and the weights that are read in 16 bits, with
// float32 masters, O3 leaves nothing beyond 16 bits in the weights either.
//
// Whoever trains puts Config.Precision into every nn.Pass, multiplies the seed
// of each loss by Scaler.Scale, divides it out of the summed gradients, and ends
// each step with Scaler.Done. parallel.GradFusion does all but the first.
//
// The package decides and computes numbers; conversions are those of package
// device, and the agreement of ranks about overflows is package parallel's.
package amp
