package parallel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

func TestPlacement(t *testing.T) {
	// Two hosts of four ranks, numbered in turn.
	hosts := [][]int{{0, 2, 4, 6}, {1, 3, 5, 7}}
	for _, c := range []struct {
		pipeline, data, tensor int
		placement              string
		want                   []int // the ranks by place: tensor first, then data, then pipeline
	}{
		{2, 4, 1, "", []int{0, 2, 4, 6, 1, 3, 5, 7}},
		{2, 4, 1, "data-inside", []int{0, 2, 4, 6, 1, 3, 5, 7}},
		{2, 2, 2, "auto", []int{0, 2, 4, 6, 1, 3, 5, 7}},
		{2, 2, 2, "pipeline-inside", []int{0, 2, 1, 3, 4, 6, 5, 7}},
		{4, 2, 1, "pipeline-inside", []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{4, 2, 1, "auto", []int{0, 2, 1, 3, 4, 6, 5, 7}},
		{2, 4, 1, "rank-order", []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{1, 8, 1, "rank-order", []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{1, 1, 8, "auto", []int{0, 1, 2, 3, 4, 5, 6, 7}},
	} {
		places, err := placesOn(hosts, 8, c.pipeline, c.data, c.tensor, c.placement)
		require.NoError(t, err)
		m := &Mesh{Pipeline: c.pipeline, Data: c.data, Tensor: c.tensor, places: places}
		got := make([]int, 8)
		for rank, p := range places {
			got[m.index(p)] = rank
		}
		require.Equal(t, c.want, got, "%+v", c)
	}
	_, err := placesOn(hosts, 8, 1, 8, 1, "nearby")
	require.EqualError(t, err, `parallel: placement "nearby" is none of auto, data-inside, pipeline-inside, rank-order`)
}

// Whatever the hosts are, every rank has a place of its own, rank 0 the origin,
// and no group of tensor partners is spread if its host has room for it.
func TestPlacementOfUnevenHosts(t *testing.T) {
	for _, hosts := range [][][]int{{{0, 1, 2}, {3, 4, 5, 6, 7}}, {{0}, {1}, {2, 3, 4, 5, 6, 7}}, {{5, 0, 3}, {1, 7}, {2, 4, 6}}, {{0, 1, 2, 3, 4, 5, 6, 7}}} {
		hostOf := map[int]int{}
		for h, ranks := range hosts {
			for _, r := range ranks {
				hostOf[r] = h
			}
		}
		for _, size := range [][3]int{{1, 8, 1}, {8, 1, 1}, {1, 1, 8}, {2, 2, 2}, {4, 1, 2}, {1, 4, 2}, {2, 1, 4}} {
			for _, placement := range Placements() {
				places, err := placesOn(hosts, 8, size[0], size[1], size[2], placement)
				require.NoError(t, err)
				name := fmt.Sprint(hosts, size, placement)
				require.Equal(t, Place{}, places[0], name)
				seen := map[Place]bool{}
				for _, p := range places {
					require.False(t, seen[p], name)
					require.True(t, p.Pipeline < size[0] && p.Data < size[1] && p.Tensor < size[2], name)
					seen[p] = true
				}
				if placement == "rank-order" {
					continue
				}
				whole, possible := 0, 0
				for _, ranks := range hosts {
					possible += len(ranks) / size[2]
				}
				groups := map[Place][]int{}
				for rank, p := range places {
					key := Place{p.Pipeline, p.Data, 0}
					groups[key] = append(groups[key], hostOf[rank])
				}
				for _, on := range groups {
					if len(slices.Compact(slices.Sorted(slices.Values(on)))) == 1 {
						whole++
					}
				}
				require.GreaterOrEqual(t, whole, possible, name)
			}
		}
	}
}

func TestMeshLines(t *testing.T) {
	err := world(t.Context(), 8, func(ctx context.Context, comm collective.Comm) error {
		m, err := NewMesh(ctx, comm, MeshConfig{Pipeline: 2, Tensor: 2})
		if err != nil {
			return err
		}
		sum := func(c collective.Comm, v int) (int64, error) {
			buf := []int64{int64(v)}
			err := collective.AllReduce(ctx, c, collective.Sum, device.FromI64(buf))
			return buf[0], err
		}
		for _, line := range []struct {
			c          collective.Comm
			size, rank int
			along      func(p Place) Place
		}{
			{m.Column, 2, m.At.Pipeline, func(p Place) Place { p.Pipeline = 0; return p }},
			{m.Replicas, 2, m.At.Data, func(p Place) Place { p.Data = 0; return p }},
			{m.Partners, 2, m.At.Tensor, func(p Place) Place { p.Tensor = 0; return p }},
		} {
			want := 0
			for rank := range comm.Size() {
				if line.along(m.PlaceOf(rank)) == line.along(m.At) {
					want += rank
				}
			}
			got, err := sum(line.c, comm.Rank())
			if err != nil {
				return err
			}
			if line.c.Size() != line.size || line.c.Rank() != line.rank || got != int64(want) {
				return fmt.Errorf("rank %d: line of %d, rank %d, sum %d, want %d, %d, %d", comm.Rank(), line.c.Size(), line.c.Rank(), got, line.size, line.rank, want)
			}
		}
		ends, err := m.SubColumn(ctx, []int{1})
		if (ends == nil) != (m.At.Pipeline == 0) {
			err = errors.Join(err, fmt.Errorf("rank %d: a Comm of the last place is %v", comm.Rank(), ends))
		}
		return errors.Join(err, m.Close())
	})
	require.NoError(t, err)
}

// A grid of one line is the world itself: nothing new is made.
func TestMeshOfOneLineIsTheWorld(t *testing.T) {
	err := world(t.Context(), 3, func(ctx context.Context, comm collective.Comm) error {
		m, err := NewMesh(ctx, comm, MeshConfig{})
		if err != nil {
			return err
		}
		if m.Replicas != comm || m.Data != 3 {
			return errors.New("the replicas are not the world")
		}
		_, err = NewMesh(ctx, comm, MeshConfig{Pipeline: 2})
		if err == nil {
			return errors.New("3 ranks were cut in 2 stages")
		}
		return m.Close()
	})
	require.NoError(t, err)
}
