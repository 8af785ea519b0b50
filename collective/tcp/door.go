package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/gradfusion/gradfusion/collective/internal/lobby"
)

const (
	defaultConnectTime = 60 * time.Second
	greetingTime       = 10 * time.Second // for a stranger to prove the token
	maxStrangers       = 256              // greetings at a time
)

// door is where connections of this rank come from: it listens for the higher
// ranks and dials the lower ones. It stays open after Join when connections may
// be repaired.
type door struct {
	Config
	secure    *settings
	listener  net.Listener
	addresses []string // of all ranks, once they are known

	ctx    context.Context // ends greetings
	cancel context.CancelFunc
	all    sync.WaitGroup // accepting and greetings
	lobby  lobby.Lobby

	mu    sync.Mutex
	conns [][]net.Conn  // by rank and socket
	need  int           // connections of peers of higher rank that have not come
	full  chan struct{} // closed when need is 0
	away  error         // why the newest connection was turned away

	ready     chan struct{} // closed when transport is there
	transport *Transport
}

func openDoor(ctx context.Context, c Config) (*door, error) {
	secure, err := c.TLS.settings()
	if err != nil {
		return nil, err
	}
	listener, err := c.listen(ctx)
	if err != nil {
		return nil, err
	}
	d := &door{
		Config: c, secure: secure, listener: listener,
		lobby: lobby.Lobby{Size: maxStrangers},
		conns: make([][]net.Conn, c.Size),
		full:  make(chan struct{}),
		ready: make(chan struct{}),
	}
	for peer := range d.conns {
		if !c.connects(peer) {
			continue
		}
		d.conns[peer] = make([]net.Conn, c.Sockets)
		if peer > c.Rank {
			d.need += c.Sockets
		}
	}
	if d.need == 0 {
		close(d.full)
	}
	// Greetings end with the door, so that a silent stranger cannot hold it open.
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.all.Go(d.accept)
	return d, nil
}

func (d *door) close() {
	_ = d.listener.Close()
	d.cancel()
	d.all.Wait()
}

// dial makes one connection to a lower rank and introduces this one.
func (d *door) dial(ctx context.Context, peer int, h hello) (net.Conn, uint32, error) {
	ctx, cancel := context.WithTimeout(ctx, greetingTime)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", d.addresses[peer])
	if err != nil {
		return nil, 0, err
	}
	if err := d.tune(conn.(*net.TCPConn)); err != nil {
		_ = conn.Close()
		return nil, 0, err
	}
	if d.secure != nil {
		conn = tls.Client(conn, d.secure.client)
	}
	var count uint32
	err = greet(ctx, conn, func() (err error) {
		count, err = d.introduce(conn, h)
		return err
	})
	if err != nil {
		_ = conn.Close()
		return nil, 0, err
	}
	return conn, count, nil
}

// greet runs one half of the greeting under a deadline that ctx brings forward.
func greet(ctx context.Context, conn net.Conn, half func() error) error {
	_ = conn.SetDeadline(time.Now().Add(greetingTime))
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })
	err := half()
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	return err
}

// accept greets whoever connects, until the door closes.
func (d *door) accept() {
	for {
		conn, err := d.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || d.ctx.Err() != nil {
				return
			}
			rest(d.ctx, 10*time.Millisecond) // descriptors are short for a moment
			continue
		}
		d.lobby.Enter(conn)
		d.all.Go(func() {
			if err := d.receive(conn); err != nil {
				d.turnAway(conn, err)
			}
		})
	}
}

func (d *door) turnAway(conn net.Conn, err error) {
	d.mu.Lock()
	d.away = fmt.Errorf("%v: %w", conn.RemoteAddr(), err)
	d.mu.Unlock()
	if d.Refused != nil {
		d.Refused(conn.RemoteAddr(), err)
	}
	_ = conn.Close()
}

// receive greets one connection and gives it to whom it belongs. After an error
// it is the caller's to close.
func (d *door) receive(conn net.Conn) error {
	bare := conn
	if d.secure != nil {
		conn = tls.Server(conn, d.secure.server)
	}
	var h hello
	answered := false
	err := greet(d.ctx, conn, func() (err error) {
		h, err = d.welcome(conn)
		if out := d.lobby.Leave(bare); out != nil && err != nil {
			return out
		}
		if err == nil {
			err = d.tune(bare.(*net.TCPConn))
		}
		if err != nil || h.wish == wishResume {
			return err
		}
		if h.wish == wishJoin {
			select {
			case <-d.ready: // the answer to its first attempt was lost
				return nil
			default:
			}
		}
		answered = true
		return answer(conn, "", 0)
	})
	switch {
	case err != nil:
		return err
	case h.wish == wishProbe:
		_ = conn.Close()
		return nil
	case answered && d.keep(h.from, h.index, conn):
		return nil
	case answered:
		return fmt.Errorf("rank %d connected once more when the world was whole", h.from)
	}
	timer := time.NewTimer(greetingTime)
	defer timer.Stop()
	select {
	case <-d.ready:
	case <-timer.C:
		return fmt.Errorf("rank %d wants to resume before this rank has joined", h.from)
	case <-d.ctx.Done():
		return d.ctx.Err()
	}
	err = d.transport.links[h.from].sockets[h.index].offer(d.ctx, arrived{conn, h.handled})
	if errors.Is(err, errOver) {
		_ = conn.SetDeadline(time.Now().Add(greetingTime))
		_ = answer(conn, err.Error(), 0)
	}
	return err
}

// keep stores a connection of the world that forms; a second one of the same
// socket replaces the first, which the peer has given up. It returns false when
// the world has formed.
func (d *door) keep(peer, index int, conn net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conns == nil {
		return false
	}
	old := d.conns[peer][index]
	d.conns[peer][index] = conn
	if old != nil {
		_ = old.Close()
	} else if peer > d.Rank {
		if d.need--; d.need == 0 {
			close(d.full)
		}
	}
	return true
}

// take ends the forming of the world.
func (d *door) take() [][]net.Conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	conns := d.conns
	d.conns = nil
	return conns
}
