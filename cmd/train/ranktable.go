package main

import (
	"fmt"
	"os"

	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/collective/ranktable"
	"github.com/gradfusion/gradfusion/launch"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// rankTable reads collective.rank_table for a world of ranks; nil without one.
func rankTable(c *config.Config, world int) (*ranktable.Table, error) {
	const key = "collective.rank_table"
	file := c.Collective.RankTable
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, c.Errorf(key, "%s: the table cannot be read: %v", key, err)
	}
	table, faults, err := ranktable.Parse(text)
	switch {
	case err != nil:
		return nil, c.Errorf(key, "%s: %s: %v", key, file, err)
	case len(faults) > 0:
		more := ""
		if n := len(faults); n > 1 {
			more = fmt.Sprintf(" (and %d more)", n-1)
		}
		return nil, c.Errorf(key, "%s: %s: %v%s; \"train diag -rank-table %s\" lists all faults, and with -fix OUT writes a valid table", key, file, faults[0], more, file)
	case len(table.Places()) != world:
		return nil, c.Errorf(key, "%s: %s has %d ranks, but the job has %d; they have to be the same", key, file, len(table.Places()), world)
	case c.Collective.Transport == "shm" && len(table.Servers) > 1:
		return nil, c.Errorf(key, "%s: %s has %d servers, which collective.transport: shm cannot connect; leave it at auto", key, file, len(table.Servers))
	}
	return table, nil
}

// tabled says where a rank table puts a rank: all ranks by host, and the name of
// this one's server. Without a table both are empty.
func tabled(c *config.Config, place launch.Place) (hosts [][]int, machine string, err error) {
	table, err := rankTable(c, place.Size)
	if err != nil || table == nil {
		return nil, "", err
	}
	return table.Hosts(), table.Servers[table.Places()[place.Rank].Server].ID, nil
}

// worldHere makes the transports of ranks in this process.
func worldHere(c *config.Config, world int) ([]*inproc.Transport, error) {
	table, err := rankTable(c, world)
	if err != nil {
		return nil, err
	}
	if table == nil {
		return inproc.New(world), nil
	}
	return inproc.NewOn(table.Hosts()), nil
}
