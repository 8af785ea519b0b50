package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/gradfusion/gradfusion/collective/store"
	"github.com/gradfusion/gradfusion/launch"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// compareWays finds, over the store, ranks that are set to meet in different ways:
// they would wait for each other until the time-out, or, with different algorithms, not
// understand each other's first call, in which all other settings are compared. All
// ranks get the same error.
func compareWays(ctx context.Context, place launch.Place, s *store.Client, c *config.Config) error {
	pack, err := c.Collective.Pack.MarshalText()
	if err != nil {
		return err
	}
	own := fmt.Sprintf("collective.transport: %s\ncollective.algorithm: %s\ncollective.pack: %s", c.Collective.Transport, c.Collective.Algorithm, pack)
	keys := make([]string, place.Size)
	for rank := range keys {
		keys[rank] = fmt.Sprintf("%s/ways/%d", place.Job, rank)
	}
	if err := s.Set(ctx, keys[place.Rank], []byte(own)); err != nil {
		return err
	}
	all, err := s.Wait(ctx, keys...)
	if err != nil {
		return fmt.Errorf("rank %d of %d compares how ranks are to meet: %w", place.Rank, place.Size, err)
	}
	first := strings.Split(string(all[0]), "\n")
	for rank, text := range all {
		for i, line := range strings.Split(string(text), "\n") {
			if i < len(first) && line == first[i] {
				continue
			}
			key, _, _ := strings.Cut(line, ":")
			return &coded{c.Errorf(key, "the ranks differ: rank 0 has %q, rank %d has %q; start all ranks with one configuration", first[min(i, len(first)-1)], rank, line), exitUsage}
		}
	}
	return nil
}
