package trainer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/parallel"
)

// place puts the ranks in the mesh that the parallel section asks for.
func (s *session) place(ctx context.Context) (err error) {
	c := s.cfg.Parallel
	if s.mesh, err = parallel.NewMesh(ctx, s.comm, parallel.MeshConfig{Pipeline: c.Pipeline, Tensor: c.Tensor, Placement: s.cfg.Launch.Placement}); err != nil {
		return err
	}
	if c.Tensor > 1 {
		s.partners = parallel.NewPartners(ctx, s.mesh.Partners, s.cfg.Train.Deterministic == "world")
		s.partners.Events = s.job.Events
	}
	return nil
}

// cutOverRanks reports whether no rank holds the whole model.
func (s *session) cutOverRanks() bool { return s.mesh.Pipeline*s.mesh.Tensor > 1 }

// build makes the model, or this rank's part of its layers, without memory.
func (s *session) build() (err error) {
	if s.partners != nil && s.job.Model != nil {
		return errors.New("trainer: Job.Model is whole, and parallel.tensor cuts the layers of models that Run builds: leave it nil")
	}
	if s.model = s.job.Model; s.model == nil {
		s.model, err = s.newModel()
	}
	return err
}

// newModel makes the model that the configuration names, of which this rank has a
// part where it has partners.
func (s *session) newModel() (*models.Model, error) {
	if s.partners == nil {
		return s.modelOf(nil)
	}
	return s.modelOf(s.partners)
}

// probeModel is newModel for passes that find out what they take, on one rank
// alone: the same on all ranks.
func (s *session) probeModel() (*models.Model, *absent, error) {
	alone := &absent{size: s.cfg.Parallel.Tensor}
	m, err := s.modelOf(alone)
	return m, alone, err
}

// modelOf makes the model, or the part of it that one of partners has.
func (s *session) modelOf(partners nn.Partners) (*models.Model, error) {
	network := s.cfg.Network(s.data.Shape())
	if err := network.Shares(s.cfg.Parallel.Tensor); err != nil {
		return nil, s.cfg.Errorf("parallel.tensor", "parallel.tensor: %v", err)
	}
	network.Partners = partners
	m, err := models.New(network)
	if err != nil {
		return nil, fmt.Errorf("model.name: %w", err)
	}
	return m, nil
}

// paramOf is the parameter whose state has that name by parallel.StateName; other
// names stay as they are.
func paramOf(name string) string {
	if at := strings.LastIndexByte(name, '/'); at >= 0 {
		return name[:at]
	}
	return name
}

// tensorParts has the parts of parameters by their names.
func (s *session) tensorParts() map[string]*nn.Part {
	parts := map[string]*nn.Part{}
	for _, p := range nn.Params(s.blocks) {
		if p.Part != nil {
			parts[p.Name] = p.Part
		}
	}
	return parts
}

// verifyPartners repeats, as fusion.check_every says, the comparison of what all
// partners hold; GradFusion compares what columns hold.
func (s *session) verifyPartners(ctx context.Context, done int) error {
	if n := s.cfg.Fusion.CheckEvery; s.partners == nil || n == 0 || done%n != 0 {
		return nil
	}
	if err := s.partners.Verify(ctx, nn.Params(s.blocks)); err != nil {
		return fmt.Errorf("after step %d: %w", done, err)
	}
	return nil
}
