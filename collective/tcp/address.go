package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
)

// listen opens the own port.
func (c Config) listen(ctx context.Context) (net.Listener, error) {
	host := c.ListenAddr
	port := "0"
	if h, p, err := net.SplitHostPort(c.ListenAddr); err == nil {
		host, port = h, p
	}
	switch {
	case host != "":
		host = strings.Trim(host, "[]")
	case c.Interface != "":
		ip, err := interfaceAddress(c.Interface)
		if err != nil {
			return nil, fmt.Errorf("tcp: rank %d: %w", c.Rank, err)
		}
		host = ip.String()
	default:
		host = "127.0.0.1"
	}
	address := net.JoinHostPort(host, port)
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("tcp: rank %d: address %s is in use; choose another port, or none for a free one: %w", c.Rank, address, err)
	case err != nil:
		return nil, fmt.Errorf("tcp: rank %d: listen on %s: %w", c.Rank, address, err)
	}
	return listener, nil
}

// advertise is the address that peers are told.
func advertise(listener net.Listener) (string, error) {
	bound, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return "", fmt.Errorf("tcp: %v is no TCP address", listener.Addr())
	}
	if !bound.IP.IsUnspecified() {
		return bound.String(), nil
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("tcp: own addresses: %w", err)
	}
	ip, err := choose(addresses)
	if err != nil {
		return "", fmt.Errorf("tcp: to publish %s: %w", bound, err)
	}
	return netip.AddrPortFrom(ip, uint16(bound.Port)).String(), nil
}

func interfaceAddress(name string) (netip.Addr, error) {
	device, err := net.InterfaceByName(name)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("network interface %s: %w (this host has %s)", name, err, interfaceNames())
	}
	addresses, err := device.Addrs()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("network interface %s: %w", name, err)
	}
	ip, err := choose(addresses)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("network interface %s: %w", name, err)
	}
	if ip.IsLinkLocalUnicast() {
		ip = ip.WithZone(name)
	}
	return ip, nil
}

func interfaceNames() string {
	devices, err := net.Interfaces()
	if err != nil || len(devices) == 0 {
		return "none"
	}
	names := make([]string, len(devices))
	for i, d := range devices {
		names[i] = d.Name
	}
	return strings.Join(names, ", ")
}

// choose prefers a routable IPv4 address, then a routable IPv6 one, then what
// there is.
func choose(addresses []net.Addr) (netip.Addr, error) {
	var best netip.Addr
	rank := func(ip netip.Addr) int {
		switch {
		case !ip.IsValid():
			return 0
		case ip.IsLinkLocalUnicast():
			return 1
		case ip.IsLoopback():
			return 2
		case ip.Is6():
			return 3
		}
		return 4
	}
	for _, a := range addresses {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		if ip := prefix.Addr().Unmap(); rank(ip) > rank(best) {
			best = ip
		}
	}
	if !best.IsValid() {
		return best, errors.New("no address")
	}
	return best, nil
}

// hostIdentity is equal for processes that share a kernel and its network, which
// is what "same host" means: they reach each other on 127.0.0.1.
func hostIdentity() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	network, err2 := os.Readlink("/proc/self/ns/net")
	if err == nil && err2 == nil {
		return strings.TrimSpace(string(boot)) + " " + network
	}
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// groupHosts lists ranks by equal identity, in the order of their lowest rank.
func groupHosts(identities []string) [][]int {
	var hosts [][]int
	place := map[string]int{}
	for rank, id := range identities {
		i, known := place[id]
		if !known || id == "" {
			i = len(hosts)
			place[id] = i
			hosts = append(hosts, nil)
		}
		hosts[i] = append(hosts[i], rank)
	}
	return hosts
}
