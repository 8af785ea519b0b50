package mixed

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Hosts is collective: it returns the world's ranks by host, hosts in the order
// of their lowest ranks, alike on all ranks.
//
// Every rank opens an abstract unix socket of a random name, publishes the name
// and tries those of the lower ranks in turn; the first that it can connect to
// is the lowest rank of its host. It publishes that, and all know all. Where the
// system has no such sockets every rank is on a host of its own.
func Hosts(ctx context.Context, c Config) ([][]int, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("hosts: %w", err)
	}
	if c.TCP.Size == 1 {
		return [][]int{{0}}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()
	hosts, err := c.hosts(ctx)
	if err != nil {
		return nil, fmt.Errorf("rank %d of %d finds out who shares a host: %w", c.TCP.Rank, c.TCP.Size, err)
	}
	return hosts, nil
}

func (c Config) hosts(ctx context.Context) ([][]int, error) {
	bell := openBell()
	defer bell.close()
	doors, err := c.exchange(ctx, "door", c.Machine+"\n"+bell.name())
	if err != nil {
		return nil, err
	}
	lowest := c.TCP.Rank
	for rank := range c.TCP.Rank {
		machine, name, _ := strings.Cut(doors[rank], "\n")
		if machine == c.Machine && answers(ctx, name) {
			lowest = rank
			break
		}
	}
	// When all have published this, all have tried, and the socket may go.
	leaders, err := c.exchange(ctx, "lowest", strconv.Itoa(lowest))
	if err != nil {
		return nil, err
	}
	return byLeader(leaders)
}

// exchange publishes this rank's value and returns everybody's.
func (c Config) exchange(ctx context.Context, what, value string) ([]string, error) {
	if err := c.TCP.Store.Set(ctx, c.key(what, c.TCP.Rank), []byte(value)); err != nil {
		return nil, err
	}
	keys := make([]string, c.TCP.Size)
	for rank := range keys {
		keys[rank] = c.key(what, rank)
	}
	values, err := c.TCP.Store.Wait(ctx, keys...)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(values))
	for rank, value := range values {
		texts[rank] = string(value)
	}
	return texts, nil
}

// byLeader lists the ranks by the lowest rank of their hosts.
func byLeader(leaders []string) ([][]int, error) {
	var hosts [][]int
	place := map[int]int{}
	for rank, text := range leaders {
		leader, err := strconv.Atoi(text)
		if err != nil || leader < 0 || leader > rank {
			return nil, fmt.Errorf("rank %d names %q as the lowest rank of its host", rank, text)
		}
		if leader == rank {
			place[rank] = len(hosts)
			hosts = append(hosts, nil)
		}
		at, known := place[leader]
		if !known {
			return nil, fmt.Errorf("rank %d is on the host of rank %d, which is on that of %s", rank, leader, leaders[leader])
		}
		hosts[at] = append(hosts[at], rank)
	}
	return hosts, nil
}
