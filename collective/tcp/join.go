package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective/store"
)

const (
	defaultConnectTime = 60 * time.Second
	greetingTime       = 10 * time.Second // for a stranger to prove the token
	maxStrangers       = 256
	parallelDials      = 32
)

// mesh is a world on its way.
type mesh struct {
	Config
	listener net.Listener

	mu    sync.Mutex
	conns []*net.TCPConn
	need  int           // peers of higher rank that have not connected
	full  chan struct{} // closed when need is 0

	greeting sync.WaitGroup
	places   chan struct{}
}

// Join connects this rank with all others and returns when every link of this
// rank is up. All ranks call it at about the same time.
func Join(ctx context.Context, c Config) (*Transport, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Size == 1 {
		return newTransport(0, make([]*net.TCPConn, 1), [][]int{{0}})
	}
	limit := c.ConnectTimeout
	if limit == 0 {
		limit = defaultConnectTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	listener, err := c.listen(ctx)
	if err != nil {
		return nil, err
	}
	m := &mesh{
		Config:   c,
		listener: listener,
		conns:    make([]*net.TCPConn, c.Size),
		need:     c.Size - 1 - c.Rank,
		full:     make(chan struct{}),
		places:   make(chan struct{}, maxStrangers),
	}
	if m.need == 0 {
		close(m.full)
	}
	// Greetings end with their sockets, so that a silent stranger cannot hold up
	// the end of Join.
	greetings, endGreetings := context.WithCancel(ctx)
	var accepting sync.WaitGroup
	accepting.Go(func() { m.accept(greetings) })
	hosts, err := m.connect(ctx)
	_ = listener.Close()
	endGreetings()
	accepting.Wait()
	m.greeting.Wait()
	if err == nil {
		var t *Transport
		if t, err = newTransport(c.Rank, m.conns, hosts); err == nil {
			return t, nil
		}
	}
	for _, conn := range m.conns {
		if conn != nil {
			_ = conn.Close()
		}
	}
	return nil, err
}

// connect publishes, dials the lower ranks and waits for the higher ones.
func (m *mesh) connect(ctx context.Context) ([][]int, error) {
	start := time.Now()
	own, err := advertise(m.listener)
	if err != nil {
		return nil, err
	}
	host := m.Host
	if host == "" {
		host = hostIdentity()
	}
	if err := m.Store.Set(ctx, m.key(m.Rank), []byte(own+"\n"+host)); err != nil {
		return nil, fmt.Errorf("tcp: rank %d publishes its address: %w", m.Rank, err)
	}
	addresses, identities, err := m.lookUp(ctx, start)
	if err != nil {
		return nil, err
	}
	group, dialing := errgroup.WithContext(ctx)
	group.SetLimit(parallelDials)
	for peer := range m.Rank {
		group.Go(func() error { return m.dial(dialing, peer, addresses[peer]) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	select {
	case <-m.full:
		return groupHosts(identities), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("tcp: rank %d: ranks %s did not connect within %v: %w",
			m.Rank, m.missing(), time.Since(start).Round(time.Millisecond), ctx.Err())
	}
}

// lookUp waits for the addresses and host identities of all ranks.
func (m *mesh) lookUp(ctx context.Context, start time.Time) (addresses, identities []string, err error) {
	keys := make([]string, m.Size)
	for rank := range keys {
		keys[rank] = m.key(rank)
	}
	values, err := m.Store.Wait(ctx, keys...)
	if err != nil {
		var wait *store.WaitError
		if errors.As(err, &wait) && ctx.Err() != nil {
			return nil, nil, fmt.Errorf("tcp: rank %d: ranks %s did not join within %v: %w",
				m.Rank, ranksOf(keys, wait.Missing), time.Since(start).Round(time.Millisecond), err)
		}
		return nil, nil, fmt.Errorf("tcp: rank %d waits for its peers' addresses: %w", m.Rank, err)
	}
	addresses, identities = make([]string, m.Size), make([]string, m.Size)
	for rank, v := range values {
		address, identity, ok := strings.Cut(string(v), "\n")
		if !ok {
			return nil, nil, fmt.Errorf("tcp: rank %d: key %s of the store holds no address", m.Rank, keys[rank])
		}
		addresses[rank], identities[rank] = address, identity
	}
	return addresses, identities, nil
}

func ranksOf(keys, missing []string) string {
	in := map[string]bool{}
	for _, k := range missing {
		in[k] = true
	}
	var ranks []string
	for rank, k := range keys {
		if in[k] {
			ranks = append(ranks, fmt.Sprint(rank))
		}
	}
	return strings.Join(ranks, ", ")
}

func (m *mesh) missing() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ranks []string
	for rank := m.Rank + 1; rank < m.Size; rank++ {
		if m.conns[rank] == nil {
			ranks = append(ranks, fmt.Sprint(rank))
		}
	}
	return strings.Join(ranks, ", ")
}

// dial connects to a lower rank, again and again until ctx ends.
func (m *mesh) dial(ctx context.Context, peer int, address string) error {
	var d net.Dialer
	start := time.Now()
	var last error // the newest that is not a time-out
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		conn, err := d.DialContext(ctx, "tcp", address)
		if err == nil {
			var refused bool
			refused, err = greet(ctx, conn, func() (bool, error) { return m.introduce(conn, peer) })
			if err == nil {
				m.keep(peer, conn)
				return nil
			}
			_ = conn.Close()
			if refused {
				return fmt.Errorf("tcp: rank %d: rank %d at %s turned it away: %w", m.Rank, peer, address, err)
			}
		}
		var late net.Error
		if last == nil || !errors.As(err, &late) || !late.Timeout() {
			last = err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("tcp: rank %d: rank %d at %s not reachable within %v: %w",
				m.Rank, peer, address, time.Since(start).Round(time.Millisecond), last)
		}
	}
}

// greet runs one half of the greeting under a deadline that ctx brings forward.
func greet(ctx context.Context, conn net.Conn, half func() (bool, error)) (bool, error) {
	_ = conn.SetDeadline(time.Now().Add(greetingTime))
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })
	refused, err := half()
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	return refused, err
}

// accept greets whoever connects, until the listener closes.
func (m *mesh) accept(ctx context.Context) {
	for {
		select {
		case m.places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		conn, err := m.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
				return
			}
			<-m.places
			rest(ctx, 10*time.Millisecond) // descriptors are short for a moment
			continue
		}
		m.greeting.Go(func() {
			m.receive(ctx, conn)
			<-m.places
		})
	}
}

// rest keeps a listener that fails again and again from taking a core.
func rest(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (m *mesh) receive(ctx context.Context, conn net.Conn) {
	peer := 0
	_, err := greet(ctx, conn, func() (_ bool, err error) {
		peer, err = m.welcome(conn)
		return false, err
	})
	if err == nil {
		m.keep(peer, conn)
		return
	}
	if m.Refused != nil {
		m.Refused(conn.RemoteAddr(), err)
	}
	_ = conn.Close()
}

// keep stores a link; a second one of the same peer replaces the first, which
// the peer has given up.
func (m *mesh) keep(peer int, conn net.Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.conns[peer]
	m.conns[peer], _ = conn.(*net.TCPConn)
	if old != nil {
		_ = old.Close()
	} else if peer > m.Rank {
		if m.need--; m.need == 0 {
			close(m.full)
		}
	}
}
