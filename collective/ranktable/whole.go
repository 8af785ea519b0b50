package ranktable

import (
	"fmt"
	"slices"
	"strings"
)

// whole checks what no single field shows, and numbers the ranks where they
// have no numbers.
func (p *parser) whole() {
	if p.unranked {
		p.numberRanks()
	}
	p.servers()
	p.devices()
	p.ranks()
}

// numberRanks gives ranks in the order of the table. A table with some ranks is
// numbered anew as a whole, because there is no telling which were meant.
func (p *parser) numberRanks() {
	rank := 0
	for s := range p.out.Servers {
		for d := range p.out.Servers[s].Devices {
			p.out.Servers[s].Devices[d].Rank = rank
			rank++
		}
	}
	if p.ranked {
		p.fault(0, "rank_id", "all ranks numbered in the order of the table", "is given for some devices and not for others")
	}
}

func (p *parser) servers() {
	if len(p.out.Servers) == 0 {
		p.fault(0, "server_list", "", "has no server")
	}
	ids, hosts := map[string]int{}, map[string]int{}
	for i, s := range p.out.Servers {
		at := fmt.Sprintf("server_list[%d]", i)
		if before, twice := ids[s.ID]; twice {
			p.fault(0, at+".server_id", "", "%q is that of server_list[%d] too", s.ID, before)
		}
		ids[s.ID] = i
		if before, twice := hosts[s.HostIP]; twice && s.HostIP != "" {
			p.fault(0, at+".host_ip", "", "%s is that of server_list[%d] too", s.HostIP, before)
		}
		hosts[s.HostIP] = i
	}
}

func (p *parser) devices() {
	type endpoint struct {
		ip   string
		port int
	}
	addresses := map[endpoint]string{}
	for i, s := range p.out.Servers {
		ids := map[int]int{}
		for k, d := range s.Devices {
			at := fmt.Sprintf("server_list[%d].device[%d]", i, k)
			// Several processes may share a device when their ports differ.
			if before, twice := ids[d.ID]; twice && s.Devices[before].Port == d.Port {
				p.fault(0, at+".device_id", "", "%d is that of device[%d] of the same server too", d.ID, before)
			}
			ids[d.ID] = k
			if d.IP == "" {
				if len(p.out.Servers) > 1 {
					p.fault(0, at+".device_ip", "", "is missing, and several servers meet over the devices' own network; the address is in /etc/hccn.conf, or: hccn_tool -i %d -ip -g", d.ID)
				}
				continue
			}
			end := endpoint{d.IP, d.Port}
			if before, twice := addresses[end]; twice {
				p.fault(0, at+".device_ip", "", "%s is that of %s too", d.IP, before)
			}
			addresses[end] = at
		}
	}
}

// ranks checks that they are 0 to n-1, each once, those of a server in one run.
func (p *parser) ranks() {
	owner := map[int]string{}
	n := 0
	for _, s := range p.out.Servers {
		n += len(s.Devices)
	}
	for i, s := range p.out.Servers {
		for k, d := range s.Devices {
			at := fmt.Sprintf("server_list[%d].device[%d]", i, k)
			switch before, twice := owner[d.Rank]; {
			case d.Rank < 0: // told where it stands
			case d.Rank >= n:
				p.fault(0, at+".rank_id", "", "is %d, but the table has %d devices, so ranks are 0 to %d", d.Rank, n, n-1)
			case twice:
				p.fault(0, at+".rank_id", "", "is %d, which %s has too", d.Rank, before)
			}
			owner[d.Rank] = at
		}
	}
	if _, unknown := owner[-1]; unknown || len(owner) != n {
		return
	}
	for i, s := range p.out.Servers {
		var ranks []int
		for _, d := range s.Devices {
			ranks = append(ranks, d.Rank)
		}
		slices.Sort(ranks)
		if len(ranks) > 0 && ranks[len(ranks)-1]-ranks[0] != len(ranks)-1 {
			p.fault(0, fmt.Sprintf("server_list[%d]", i), p.renumber(), "has the ranks %s: those of one server have to follow each other, because rings and trees cross to the next server between neighbours",
				words(ranks))
			return
		}
	}
}

// renumber makes the ranks of each server follow each other, servers in the order
// of their lowest rank, devices in the order of theirs, and says so.
func (p *parser) renumber() string {
	p.out = *p.out.Renumbered(slices.Concat(p.out.Hosts()...))
	return "ranks numbered server after server"
}

func words(numbers []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ", "), "[]")
}
