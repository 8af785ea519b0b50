package trainer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// ErrElsewhere is wrapped by the error of a rank that ends because another one
// told it that it failed; the reason is in the other's error.
var ErrElsewhere = errors.New("the reason is with that rank")

// compareRanks finds settings and data sets that differ between ranks, which
// would train to a wrong result without any sign. All ranks get the same error.
func (s *session) compareRanks(ctx context.Context, own []string) error {
	if s.comm.Size() == 1 {
		return nil
	}
	hash := sha256.Sum256([]byte(strings.Join(own, "\n")))
	hashes := make([]byte, len(hash)*s.comm.Size())
	call := collective.Call{Kind: plan.AllGather, In: device.FromU8(hash[:]), Out: device.FromU8(hashes), Label: "hash of the settings"}
	if err := s.comm.Start(ctx, call).Wait(ctx); err != nil {
		return fmt.Errorf("comparing the settings of the ranks: %w", err)
	}
	if strings.Repeat(string(hash[:]), s.comm.Size()) == string(hashes) {
		return nil
	}
	texts, err := collective.GatherBytes(ctx, s.comm, []byte(strings.Join(own, "\n")), "settings")
	if err != nil {
		return fmt.Errorf("comparing the settings of the ranks: %w", err)
	}
	first := strings.Split(string(texts[0]), "\n")
	for rank, text := range texts {
		if here, there := difference(first, strings.Split(string(text), "\n")); here != there {
			key, _, _ := strings.Cut(here+there, ":")
			advice := "start all ranks with one configuration and the same data"
			if key == kernelsKey {
				advice = "set " + key + " to what the processors of all ranks have"
			}
			return s.cfg.Errorf(key, "the ranks differ: rank 0 has %q, rank %d has %q; %s", here, rank, there, advice)
		}
	}
	return errors.New("the ranks have settings with different hashes and the same text")
}

// difference returns the first lines in which a and b differ; a missing line is
// empty.
func difference(a, b []string) (inA, inB string) {
	for i := range max(len(a), len(b)) {
		inA, inB = "", ""
		if i < len(a) {
			inA = a[i]
		}
		if i < len(b) {
			inB = b[i]
		}
		if inA != inB {
			break
		}
	}
	return inA, inB
}

// kernelsKey stands for the kernels that a rank computes with, which "auto"
// chooses by its processor. Other kernels round otherwise, so that ranks would
// drift apart.
const kernelsKey = "compute.kernels"

// common is what all ranks must have alike, a line each.
func (s *session) common() []string {
	own := s.settings()
	if s.savesTogether() {
		own = append(own, s.saving()...)
	}
	own = append(own, fmt.Sprintf("fusion.threshold_mb: buckets of %g", s.cfg.BucketMB(len(s.comm.Hosts()), s.comm.Size())))
	return append(own, fmt.Sprintf("-resume: %t", s.job.Resume), keyTraining+": "+s.contents[0], keyTest+": "+s.contents[1])
}

// saving is what ranks must have alike that take part in each other's checkpoints.
func (s *session) saving() []string {
	c := s.cfg.Checkpoint
	return []string{fmt.Sprintf("checkpoint.dir: set %t", c.Dir != ""), fmt.Sprintf("checkpoint.every: %v", c.Every)}
}

// shard decides whether the optimizer is sharded, now that the model is known.
func (s *session) shard(ctx context.Context) error {
	together := s.savesTogether()
	group, ok := s.comm.(*collective.Group)
	s.shards = s.cfg.Shards(ok && group.SharesMemory(), s.model.ParamCount())
	if s.savesTogether() && !together {
		return s.compareRanks(ctx, s.saving())
	}
	return nil
}

// savesTogether reports whether all ranks take part in a checkpoint.
func (s *session) savesTogether() bool {
	p := s.cfg.Parallel
	return p.Pipeline*p.Tensor > 1 || s.shards || s.cfg.Train.LocalSGD > 0 || s.cfg.Fusion.Wire.Keeps()
}

// settings are config.Common and what decides how this rank rounds.
func (s *session) settings() []string {
	return append(s.cfg.Common(), kernelsKey+": "+s.device.Name(), "compute.conv: "+s.cfg.Compute.Conv)
}
