package tcp

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// namePattern is a choice of interfaces by name: the grammar of HCCL_SOCKET_IFNAME
// (and of NCCL's). "eth,ib" is every name that begins so; "=eth0" exactly that
// name; with "^" in front, every name that the rest does not match.
type namePattern struct {
	not, exact bool
	names      []string
}

func parsePattern(text string) (namePattern, error) {
	var p namePattern
	rest, not := strings.CutPrefix(text, "^")
	rest, exact := strings.CutPrefix(rest, "=")
	p.not, p.exact = not, exact
	for name := range strings.SplitSeq(rest, ",") {
		name = strings.TrimSpace(name)
		if name == "" || strings.ContainsAny(name, "^=") {
			return p, fmt.Errorf("interface %q: want names with commas in between, and at most one ^ (not these) and = (exactly) in front of all", text)
		}
		p.names = append(p.names, name)
	}
	return p, nil
}

// CheckInterface finds a mistake in a Config.Interface.
func CheckInterface(pattern string) error {
	_, err := parsePattern(pattern)
	return err
}

func (p namePattern) matches(name string) bool {
	for _, n := range p.names {
		if name == n || !p.exact && strings.HasPrefix(name, n) {
			return !p.not
		}
	}
	return p.not
}

// candidate is an interface with an address.
type candidate struct {
	name string
	ip   netip.Addr
}

// chooseInterface finds the address of the interface that a pattern names: of
// several the one whose address others most likely reach, loopback last.
func chooseInterface(text string) (netip.Addr, error) {
	p, err := parsePattern(text)
	if err != nil {
		return netip.Addr{}, err
	}
	devices, err := net.Interfaces()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("network interfaces: %w", err)
	}
	var names []string
	var best candidate
	for _, device := range devices {
		names = append(names, device.Name)
		if !p.matches(device.Name) || device.Flags&net.FlagUp == 0 {
			continue
		}
		addresses, err := device.Addrs()
		if err != nil {
			continue
		}
		if ip, err := choose(addresses); err == nil && reach(ip) > reach(best.ip) {
			best = candidate{device.Name, ip}
		}
	}
	if !best.ip.IsValid() {
		return best.ip, fmt.Errorf("network interface %s: none that is up and has an address (this host has %s)", text, strings.Join(names, ", "))
	}
	if best.ip.IsLinkLocalUnicast() {
		best.ip = best.ip.WithZone(best.name)
	}
	return best.ip, nil
}
