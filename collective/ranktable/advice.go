package ranktable

import (
	"fmt"
	"net/netip"
	"slices"
	"sort"
)

// Advice is what HCCL accepts but what costs speed or goes wrong on some chips.
type Advice struct {
	Text string `json:"text"`
	// Order, where not nil, is a better numbering: Order[r] is the rank that is r
	// now. Renumbered applies it.
	Order []int `json:"order,omitempty"`
}

// Judge looks at the placement of a valid table's ranks.
func (t *Table) Judge() []Advice {
	var out []Advice
	smallest, largest := t.extremes()
	if smallest != largest {
		out = append(out, Advice{Text: fmt.Sprintf("the servers have %d to %d devices: every step waits for the smallest one's links, and Atlas A2 clusters want equal numbers", smallest, largest)})
	}
	if n := largest; len(t.Servers) == 1 && n != 1 && n != 2 && n != 4 && n != 8 {
		out = append(out, Advice{Text: fmt.Sprintf("one server with %d devices: Ascend 910 takes 1, 2, 4 or 8", n)})
	}
	for i, s := range t.Servers {
		if n := len(s.Devices); n == 2 || n == 4 {
			low := slices.ContainsFunc(s.Devices, func(d Device) bool { return d.ID < 4 })
			high := slices.ContainsFunc(s.Devices, func(d Device) bool { return d.ID >= 4 })
			if low && high {
				out = append(out, Advice{Text: fmt.Sprintf("server_list[%d] has devices of both groups 0-3 and 4-7, which HCCS does not link on Ascend 910: take them from one group", i)})
			}
		}
	}
	if order := t.betterOrder(); order != nil {
		out = append(out, Advice{
			Text:  "ranks that are neighbours talk most: number the servers of one subnet after each other, and the devices of a server in the order of their ids",
			Order: order,
		})
	}
	return out
}

func (t *Table) extremes() (smallest, largest int) {
	for i, s := range t.Servers {
		if n := len(s.Devices); i == 0 || n < smallest {
			smallest = n
		}
		largest = max(largest, len(s.Devices))
	}
	return smallest, largest
}

// betterOrder is nil when the present one is as good.
func (t *Table) betterOrder() []int {
	servers := make([]int, len(t.Servers))
	for i := range servers {
		servers[i] = i
	}
	lowest := func(s int) int {
		low := -1
		for _, d := range t.Servers[s].Devices {
			if low < 0 || d.Rank < low {
				low = d.Rank
			}
		}
		return low
	}
	sort.SliceStable(servers, func(a, b int) bool { return lowest(servers[a]) < lowest(servers[b]) })
	// Subnets come in the order in which they appear, so a table that keeps them
	// together stays as it is.
	first := map[netip.Prefix]int{}
	for at, s := range servers {
		if net := t.subnet(s); first[net] == 0 {
			first[net] = at + 1
		}
	}
	sort.SliceStable(servers, func(a, b int) bool { return first[t.subnet(servers[a])] < first[t.subnet(servers[b])] })
	var order []int
	for _, s := range servers {
		devices := slices.Clone(t.Servers[s].Devices)
		sort.SliceStable(devices, func(a, b int) bool { return devices[a].ID < devices[b].ID })
		for _, d := range devices {
			order = append(order, d.Rank)
		}
	}
	if sort.IntsAreSorted(order) {
		return nil
	}
	return order
}

// subnet is that of a server's first device, or of the host: 24 bits of IPv4, 64
// of IPv6.
func (t *Table) subnet(s int) netip.Prefix {
	text := t.Servers[s].HostIP
	if d := t.Servers[s].Devices; len(d) > 0 && d[0].IP != "" {
		text = d[0].IP
	}
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}
	}
	bits := 64
	if address.Is4() {
		bits = 24
	}
	prefix, _ := address.Prefix(bits) // bits fit
	return prefix
}

// Renumbered returns the table with rank order[r] numbered r.
func (t *Table) Renumbered(order []int) *Table {
	number := make(map[int]int, len(order))
	for r, was := range order {
		number[was] = r
	}
	out := *t
	out.Servers = slices.Clone(t.Servers)
	for s := range out.Servers {
		out.Servers[s].Devices = slices.Clone(out.Servers[s].Devices)
		for d := range out.Servers[s].Devices {
			out.Servers[s].Devices[d].Rank = number[out.Servers[s].Devices[d].Rank]
		}
	}
	return &out
}
