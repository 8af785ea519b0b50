package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// listen opens the own port.
func (c Config) listen(ctx context.Context) (net.Listener, error) {
	host := c.ListenAddr
	port := ""
	if h, p, err := net.SplitHostPort(c.ListenAddr); err == nil {
		host, port = h, p
	}
	switch {
	case host != "":
		host = strings.Trim(host, "[]")
	case c.Interface != "":
		ip, err := chooseInterface(c.Interface)
		if err != nil {
			return nil, fmt.Errorf("tcp: rank %d: %w", c.Rank, err)
		}
		host = ip.String()
	default:
		host = "127.0.0.1"
	}
	if port == "" && c.Ports != (PortRange{}) {
		return c.listenWithin(ctx, host)
	}
	if port == "" {
		port = "0"
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

// listenWithin takes the first free port of the range, each rank from a place of
// its own so that ranks of one host do not all try the same.
func (c Config) listenWithin(ctx context.Context, host string) (net.Listener, error) {
	var lc net.ListenConfig
	n := c.Ports.Last - c.Ports.First + 1
	for i := range n {
		port := c.Ports.First + (c.Rank+i)%n
		listener, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil {
			return listener, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("tcp: rank %d: listen on port %d of %s: %w", c.Rank, port, host, err)
		}
	}
	return nil, fmt.Errorf("tcp: rank %d: all of the ports %v of %s are taken; each rank of a host needs one of its own: %w",
		c.Rank, c.Ports, host, syscall.EADDRINUSE)
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

// reach orders addresses: a routable IPv4 address is best, then a routable IPv6
// one, then loopback, then what only the own link knows.
func reach(ip netip.Addr) int {
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

// choose returns the address with the best reach.
func choose(addresses []net.Addr) (netip.Addr, error) {
	var best netip.Addr
	for _, a := range addresses {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		if ip := prefix.Addr().Unmap(); reach(ip) > reach(best) {
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
