package trainer

import "github.com/gradfusion/gradfusion/data"

// checkLocalSGD refuses ranks that would train nothing, of which an average would
// count all the same.
func (s *session) checkLocalSGD() error {
	k, micros := s.cfg.Train.LocalSGD, data.Micros(s.cfg.Data.Batch, s.micro)
	if k == 0 || micros >= s.comm.Size() {
		return nil
	}
	return s.cfg.Errorf("train.local_sgd", "train.local_sgd: %d wants samples for every rank in a step, but data.batch = %d in micro-batches of %d are %d for %d ranks; take smaller micro-batches or fewer ranks",
		k, s.cfg.Data.Batch, s.micro, micros, s.comm.Size())
}
