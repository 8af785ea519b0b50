package data

import "fmt"

// Batcher writes images as normalised float32 in NCHW order. It is not changed
// once it is made and may be used concurrently.
type Batcher struct {
	set     *Images
	augment Augment
	seed    uint64
	tables  [][256]float32 // by channel: the normalised value of each pixel value
}

var _ Filler = (*Batcher)(nil)

// NewBatcher returns a Batcher for set. Training and test images take the same
// normalisation, that of the training set (Source.Normalization).
func NewBatcher(set *Images, normalization Normalization, augment Augment, seed uint64) (*Batcher, error) {
	if err := set.Check(); err != nil {
		return nil, err
	}
	if len(normalization.Mean) != set.Channels || len(normalization.Std) != set.Channels {
		return nil, fmt.Errorf("data: a normalisation of %d means and %d deviations for images of %d channels",
			len(normalization.Mean), len(normalization.Std), set.Channels)
	}
	if augment.Pad < 0 || augment.Pad >= min(set.Height, set.Width) {
		return nil, fmt.Errorf("data.augment: a crop with %d pixels of padding does not suit images of %d x %d",
			augment.Pad, set.Height, set.Width)
	}
	b := &Batcher{set: set, augment: augment, seed: seed}
	for c := range set.Channels {
		b.tables = append(b.tables, normalization.table(c))
	}
	return b, nil
}

// SampleSize returns the float32 values of one sample.
func (b *Batcher) SampleSize() int { return b.set.SampleSize() }

// Fill writes the samples indices, in that order, into x (N x C x H x W; at
// least N x SampleSize values) and their labels into y (at least N). How a
// sample is augmented is a pure function of (seed, epoch, sample). It does not
// allocate.
func (b *Batcher) Fill(x []float32, y []int32, indices []int, epoch int) error {
	size := b.set.SampleSize()
	if len(y) < len(indices) || len(x) < len(indices)*size {
		return fmt.Errorf("data: %d samples of %d values do not fit into %d values and %d labels", len(indices), size, len(x), len(y))
	}
	for i, index := range indices {
		if index < 0 || index >= b.set.Len() {
			return fmt.Errorf("data: sample %d of a set of %d", index, b.set.Len())
		}
		b.draw(x[i*size:(i+1)*size], index, epoch)
		y[i] = b.set.Labels[index]
	}
	return nil
}

func (b *Batcher) draw(x []float32, index, epoch int) {
	var p placement
	if b.augment != (Augment{}) {
		p = b.augment.place(b.seed, epoch, index)
	}
	h, w := b.set.Height, b.set.Width
	pixels := b.set.Sample(index)
	for c := range b.tables {
		plane := pixels[c*h*w : (c+1)*h*w]
		p.draw(x[c*h*w:(c+1)*h*w], plane, &b.tables[c], h, w)
	}
}
