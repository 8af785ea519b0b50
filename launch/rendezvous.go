package launch

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"

	"github.com/gradfusion/gradfusion/collective/store"
)

// Rendezvous is a rank's way to the job's store, which rank 0 serves.
type Rendezvous struct {
	Store  *store.Client
	server *store.Server // of rank 0
}

// Connect brings the process to the job's store: rank 0 serves it, on the socket
// that the launcher has opened for it or at the place's address; everybody
// dials it until ctx ends.
func Connect(ctx context.Context, p Place) (*Rendezvous, error) {
	r := &Rendezvous{}
	address := net.JoinHostPort(p.Host, strconv.Itoa(p.Port))
	if p.Rank == 0 {
		server, err := serve(ctx, p)
		if err != nil {
			return nil, err
		}
		r.server = server
	}
	client, err := store.Dial(ctx, address, p.Token)
	if err != nil {
		if r.server != nil {
			_ = r.server.Close()
		}
		return nil, fmt.Errorf("rank %d of %d: %w", p.Rank, p.Size, err)
	}
	r.Store = client
	return r, nil
}

// LocalAddr is the own address on the way to the store: one at which other
// ranks can reach this host, and 127.0.0.1 when all are here.
func (r *Rendezvous) LocalAddr() string {
	host, _, err := net.SplitHostPort(r.Store.LocalAddr().String())
	if err != nil {
		return ""
	}
	return host
}

// Close leaves the store. Rank 0 first waits for the others to leave it, until
// ctx ends.
func (r *Rendezvous) Close(ctx context.Context) error {
	err := r.Store.Close()
	if r.server == nil {
		return err
	}
	drained := r.server.Drain(ctx)
	if closed := r.server.Close(); closed != nil {
		return closed
	}
	if drained != nil {
		return drained
	}
	return err
}

func serve(ctx context.Context, p Place) (*store.Server, error) {
	if p.listener == 0 {
		return store.Listen(ctx, net.JoinHostPort(listenHost(ctx, p), strconv.Itoa(p.Port)), p.Token)
	}
	file := os.NewFile(uintptr(p.listener), "rendezvous")
	listener, err := net.FileListener(file)
	_ = file.Close()
	if err != nil {
		return nil, fmt.Errorf("%s=%d is no listening socket: %w", listenerVariable, p.listener, err)
	}
	return store.Serve(listener, p.Token), nil
}

// listenHost is where rank 0 listens: the address that the others were told. A
// name that leads elsewhere from here (to loopback as in many a hosts file, or
// to a service in front of this host) while ranks run on other hosts leaves
// only all addresses.
func listenHost(ctx context.Context, p Place) string {
	if _, err := netip.ParseAddr(p.Host); err == nil || p.LocalSize == p.Size {
		return p.Host
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", p.Host)
	if err != nil {
		return ""
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, ip := range found {
		for _, o := range own {
			if prefix, err := netip.ParsePrefix(o.String()); err == nil && prefix.Addr().Unmap() == ip.Unmap() && !ip.IsLoopback() {
				return ip.Unmap().String()
			}
		}
	}
	return ""
}
