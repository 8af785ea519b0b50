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

// Sizes returns the values of an image, and one target.
func (b *Batcher) Sizes() Sizes { return Sizes{X: b.set.SampleSize(), Y: 1} }

// Fill writes the samples indices, in that order, into to.X (N x C x H x W) and
// their labels into to.Y, which must have room for them. How a sample is
// augmented is a pure function of (seed, epoch, sample). It does not allocate.
func (b *Batcher) Fill(to Samples, indices []int, epoch int) error {
	size := b.set.SampleSize()
	if err := to.holds(len(indices), b.Sizes()); err != nil {
		return err
	}
	for i, index := range indices {
		if index < 0 || index >= b.set.Len() {
			return fmt.Errorf("data: sample %d of a set of %d", index, b.set.Len())
		}
		b.draw(to.X[i*size:(i+1)*size], index, epoch)
		to.Y[i] = b.set.Labels[index]
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

// Len returns the number of images.
func (b *Batcher) Len() int { return b.set.Len() }
