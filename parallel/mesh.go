package parallel

import (
	"context"
	"errors"
	"fmt"

	"github.com/gradfusion/gradfusion/collective"
)

// MeshConfig says how many ranks share a column's work and where they are.
type MeshConfig struct {
	Pipeline int // ranks that a model is cut over; 0 means 1
	Tensor   int // ranks that share each layer; 0 means 1
	// Placement is one of Placements; "" means the first.
	Placement string
}

// Placements are the ways to put the ranks of a job on its hosts. All keep the
// ranks that share a layer on one host where they can, because they exchange the
// most and wait for it.
//
//	auto             data-inside
//	data-inside      then the ranks that train other samples with the same
//	                 parameters: gradients stay on the host, activations of
//	                 the pipeline, which are smaller, go between hosts
//	pipeline-inside  then the stages of a column: for models whose activations
//	                 are larger than their gradients
//	rank-order       ranks as they are numbered, tensor parts first, then data
func Placements() []string {
	return []string{"auto", "data-inside", "pipeline-inside", "rank-order"}
}

// Place is what a rank does in the mesh.
type Place struct {
	Pipeline int // place in the column, from the model's beginning
	Data     int // the column: which micro-batches
	Tensor   int // part of each layer
}

// Mesh is a grid of ranks: pipeline x data x tensor. Its Comms are the lines of
// the grid on which this rank stands; they join the ranks in the order of the
// coordinate that differs.
type Mesh struct {
	Pipeline, Data, Tensor int // sizes
	At                     Place
	World                  collective.Comm // all ranks; the caller's
	// Column has the ranks with the same micro-batches and tensor part, Replicas
	// those with the same stages and tensor part, Partners those with the same
	// stages and micro-batches.
	Column, Replicas, Partners collective.Comm

	places []Place // by rank of the world
	owned  []collective.Comm
}

// NewMesh is collective over world, which stays the caller's and must outlive
// the mesh. The number of ranks must be a multiple of pipeline x tensor; rank 0
// is at the grid's origin.
func NewMesh(ctx context.Context, world collective.Comm, c MeshConfig) (*Mesh, error) {
	pipeline, tensor := max(c.Pipeline, 1), max(c.Tensor, 1)
	if world.Size()%(pipeline*tensor) != 0 {
		return nil, fmt.Errorf("parallel: %d ranks are no multiple of %d pipeline x %d tensor parts", world.Size(), pipeline, tensor)
	}
	m := &Mesh{Pipeline: pipeline, Tensor: tensor, Data: world.Size() / (pipeline * tensor), World: world}
	var err error
	if m.places, err = placesOn(world.Hosts(), world.Size(), pipeline, m.Data, tensor, c.Placement); err != nil {
		return nil, err
	}
	m.At = m.places[world.Rank()]
	for _, line := range []struct {
		comm   *collective.Comm
		length int
		colour int
		key    int
	}{
		{&m.Column, m.Pipeline, m.At.Data*m.Tensor + m.At.Tensor, m.At.Pipeline},
		{&m.Replicas, m.Data, m.At.Pipeline*m.Tensor + m.At.Tensor, m.At.Data},
		{&m.Partners, m.Tensor, m.At.Pipeline*m.Data + m.At.Data, m.At.Tensor},
	} {
		if line.length == world.Size() && m.inOrder() {
			*line.comm = world
			continue
		}
		if *line.comm, err = collective.Split(ctx, world, line.colour, line.key); err != nil {
			return nil, errors.Join(fmt.Errorf("making the mesh: %w", err), m.Close())
		}
		m.owned = append(m.owned, *line.comm)
	}
	return m, nil
}

// inOrder reports whether ranks have their places in the order of their numbers.
func (m *Mesh) inOrder() bool {
	for rank := range m.places {
		if m.index(m.places[rank]) != rank {
			return false
		}
	}
	return true
}

// index numbers places with the tensor part first, then data, then pipeline.
func (m *Mesh) index(p Place) int { return (p.Pipeline*m.Data+p.Data)*m.Tensor + p.Tensor }

// PlaceOf returns where a rank of the world is.
func (m *Mesh) PlaceOf(rank int) Place { return m.places[rank] }

// SubColumn returns a Comm of those ranks of each column whose place in the
// pipeline is listed, in that order; nil for a rank that is not among them. It is
// collective over the world, and the mesh closes it.
func (m *Mesh) SubColumn(ctx context.Context, places []int) (collective.Comm, error) {
	colour, key := -1, 0
	for i, p := range places {
		if p == m.At.Pipeline {
			colour, key = m.At.Data*m.Tensor+m.At.Tensor, i
		}
	}
	c, err := collective.Split(ctx, m.World, colour, key)
	if c != nil {
		m.owned = append(m.owned, c)
	}
	return c, err
}

// Close closes the Comms that the mesh has made.
func (m *Mesh) Close() error {
	var errs []error
	for _, c := range m.owned {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	m.owned = nil
	return errors.Join(errs...)
}
