package trainer

import (
	"github.com/gradfusion/gradfusion/optim"
	"github.com/gradfusion/gradfusion/parallel"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// overlapForward puts fusion.overlap_forward into c. Left at auto, sums go on
// beside the next forward pass where they take a way between hosts, unless that
// does not go with something else that was chosen; on one host they are over soon
// after the backward pass.
func (s *session) overlapForward(c *parallel.FusionConfig, opt optim.Optimizer) {
	switch s.cfg.Fusion.OverlapForward {
	case config.On:
		c.Defer = true // or the reason why not
	case 0:
		c.Defer = len(s.comm.Hosts()) > 1 && s.cfg.Collective.Backend == "cpu" && parallel.Defers(*c, s.stages, opt) == nil
	}
}
