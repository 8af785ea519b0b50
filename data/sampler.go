package data

import "fmt"

// Sampler gives each global step its samples. The order of an epoch is a
// Fisher-Yates shuffle with the stream of (seed, epoch); a step takes the next
// batch samples of it. Every sample comes once in an epoch; when the batch
// does not divide the set, the last step of an epoch is smaller and keeps what
// is left. All of it follows from the step number, so resuming needs nothing
// else.
//
// Batch keeps the order of the newest epoch and must not be called
// concurrently; the other methods may be.
type Sampler struct {
	samples, batch int
	seed           uint64
	epoch          int // whose order is kept, -1 before the first
	order          []int32
}

// NewSampler deals samples (of the whole training set) in steps of batch.
func NewSampler(samples, batch int, seed uint64) (*Sampler, error) {
	if samples < 1 || samples > 1<<31-1 {
		return nil, fmt.Errorf("data: a sampler of %d samples: expected 1 to 2^31 - 1", samples)
	}
	if batch < 1 || batch > samples {
		return nil, fmt.Errorf("data.batch: %d is out of range: the set has %d training samples", batch, samples)
	}
	return &Sampler{samples: samples, batch: batch, seed: seed, epoch: -1}, nil
}

// StepsPerEpoch returns ceil(samples / batch).
func (s *Sampler) StepsPerEpoch() int { return Micros(s.samples, s.batch) }

// Epoch returns the epoch, counted from 0, that a global step lies in.
func (s *Sampler) Epoch(step int) int { return step / s.StepsPerEpoch() }

// Size returns the samples of a global step: batch, or what is left at the end
// of an epoch.
func (s *Sampler) Size(step int) int {
	lo, hi := MicroBounds(s.samples, s.batch, step%s.StepsPerEpoch())
	return hi - lo
}

// Batch appends the samples of a global step to dst and returns it. It
// allocates on the first call, and when dst is too small.
func (s *Sampler) Batch(dst []int, step int) []int {
	if epoch := s.Epoch(step); epoch != s.epoch {
		s.shuffle(epoch)
	}
	lo, hi := MicroBounds(s.samples, s.batch, step%s.StepsPerEpoch())
	for _, i := range s.order[lo:hi] {
		dst = append(dst, int(i))
	}
	return dst
}

func (s *Sampler) shuffle(epoch int) {
	if s.order == nil {
		s.order = make([]int32, s.samples)
	}
	for i := range s.order {
		s.order[i] = int32(i)
	}
	random := newStream(randomOrder, s.seed, uint64(epoch), 0)
	for i := len(s.order) - 1; i > 0; i-- {
		j := random.below(uint64(i) + 1)
		s.order[i], s.order[j] = s.order[j], s.order[i]
	}
	s.epoch = epoch
}
