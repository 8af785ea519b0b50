package nn

import "github.com/gradfusion/gradfusion/device"

// Running is the running mean and variance of a BatchNorm. A forward pass does
// not touch them: it emits the moments of its micro-batch, and whoever ends the
// step merges those of all micro-batches of all ranks, in the order of their
// indices, and calls Update: momentum acts once a step. So the statistics do
// not depend on who computed which micro-batch.
type Running struct {
	Name     string // the layer's
	Channels int
	Momentum float32    // weight of the new value; PyTorch's meaning
	Mean     device.Buf // F32, Channels elements
	Var      device.Buf // F32, unbiased variance
	Across   Across     // whose micro-batches share their statistics; nil: each has its own

	// Singles counts the training passes that met one value per channel and so
	// used the running statistics; whoever trains may warn, and reset it.
	Singles int

	leaves []Moments
	used   int
}

// Moments are what one micro-batch tells of each channel: Count values, their
// mean, and the sum of squared deviations from it.
type Moments struct {
	Leaf  int // global index of the micro-batch
	Count int
	Mean  []float64
	M2    []float64
}

// Emitted returns the moments emitted since the last Update, in the order of
// emission. The slices are valid until the next Update and forward pass.
func (r *Running) Emitted() []Moments { return r.leaves[:r.used] }

// emit copies the moments of one micro-batch.
func (r *Running) emit(leaf, count int, mean, m2 []float64) {
	if r.used == len(r.leaves) {
		r.leaves = append(r.leaves, Moments{Mean: make([]float64, r.Channels), M2: make([]float64, r.Channels)})
	}
	m := &r.leaves[r.used]
	m.Leaf, m.Count = leaf, count
	copy(m.Mean, mean)
	copy(m.M2, m2)
	r.used++
}

// Update merges moments, given in ascending order of Leaf, and moves the
// running statistics by Momentum; what was emitted is forgotten. The merge is
// the pairwise update of Chan, Golub and LeVeque 1979.
func (r *Running) Update(moments []Moments) {
	defer func() { r.used = 0 }()
	if len(moments) == 0 {
		return
	}
	mean, variance := r.Mean.F32(), r.Var.F32()
	for c := range r.Channels {
		n, mu, m2 := 0.0, 0.0, 0.0
		for i := range moments {
			m := &moments[i]
			k := float64(m.Count)
			if k == 0 {
				continue
			}
			d := m.Mean[c] - mu
			total := n + k
			mu += float64(d * (k / total))
			m2 += m.M2[c] + float64(float64(d*d)*(n*k/total))
			n = total
		}
		if n < 2 {
			continue
		}
		w := float64(r.Momentum)
		mean[c] = float32(float64((1-w)*float64(mean[c])) + float64(w*mu))
		variance[c] = float32(float64((1-w)*float64(variance[c])) + float64(w*(m2/(n-1))))
	}
}

func (r *Running) materialize(dev device.Device) error {
	if r == nil || !r.Mean.IsZero() {
		return nil
	}
	var err error
	if r.Mean, err = dev.Alloc(device.F32, r.Channels); err != nil {
		return err
	}
	if r.Var, err = dev.Alloc(device.F32, r.Channels); err != nil {
		return err
	}
	v := r.Var.F32()
	for i := range v {
		v[i] = 1
	}
	return nil
}
