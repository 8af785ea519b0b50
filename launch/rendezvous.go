package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/gradfusion/gradfusion/collective/store"
)

// Rendezvous is a rank's way to the job's store, which rank 0 serves.
type Rendezvous struct {
	Store  *store.Client
	server *store.Server // of rank 0
}

// Connect brings the process to the job's store: rank 0 serves it, on the socket
// that the launcher has opened for it or at the place's address; everybody
// dials it until ctx ends. It returns when all ranks of the job have come. Its
// error wraps ErrRanks when two processes have one rank, or think of different
// numbers of ranks.
func Connect(ctx context.Context, p Place) (*Rendezvous, error) {
	r := &Rendezvous{}
	if p.Rank == 0 {
		server, err := serve(ctx, p)
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, p.blameTwin(ctx, err)
		}
		if err != nil {
			return nil, err
		}
		r.server = server
	}
	client, err := p.dial(ctx)
	if err == nil {
		r.Store = client
		err = p.callRoll(ctx, client)
	}
	if err != nil {
		r.fail(ctx, errors.Is(err, ErrRanks))
		return nil, err
	}
	return r, nil
}

func (p Place) dial(ctx context.Context) (*store.Client, error) {
	client, err := store.Dial(ctx, net.JoinHostPort(p.Host, strconv.Itoa(p.Port)), p.Token)
	if err != nil {
		return nil, fmt.Errorf("rank %d of %d: %w", p.Rank, p.Size, err)
	}
	return client, nil
}

// twinTime is how long rank 0 looks for another of its job at an address that is
// in use, and serves the others after a contradiction.
const twinTime = 2 * time.Second

// blameTwin finds out whether the store at rank 0's address is that of another
// process that is rank 0 of this job, which then learns of it as well.
func (p Place) blameTwin(ctx context.Context, inUse error) error {
	ctx, cancel := context.WithTimeout(ctx, twinTime)
	defer cancel()
	client, err := p.dial(ctx)
	if err != nil {
		return inUse
	}
	defer client.Close()
	if _, err := client.Get(ctx, p.Job+"/roll/rank/0/1"); err != nil {
		return inUse // of another job
	}
	if err := p.callRoll(ctx, client); errors.Is(err, ErrRanks) {
		return err
	}
	return inUse
}

// fail leaves a store at which the job did not start. Where that is because of a
// contradiction rank 0 gives the others a moment to come and learn of it, too.
func (r *Rendezvous) fail(ctx context.Context, contradiction bool) {
	if r.Store == nil {
		if r.server != nil {
			_ = r.server.Close()
		}
		return
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), twinTime)
	defer cancel()
	if contradiction && r.server != nil {
		_ = r.Store.Close()
		<-patience.Done()
	}
	_ = r.Close(patience)
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
