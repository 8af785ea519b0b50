//go:build linux && (amd64 || arm64)

package shm

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/gradfusion/gradfusion/collective/internal/challenge"
)

const (
	purpose      = "gfshm/01"
	greetingTime = 10 * time.Second // for a stranger to prove the token
	maxStrangers = 64
)

// connect introduces this rank to rank 0 and leaves its descriptors there.
func (c Config) connect(ctx context.Context, own descriptors, failed error) (*net.UnixConn, error) {
	if failed != nil {
		return nil, failed
	}
	names, err := c.Store.Wait(ctx, c.key("socket"))
	if err != nil {
		return nil, fmt.Errorf("the socket of rank 0: %w", err)
	}
	if len(names[0]) == 0 {
		return nil, errors.New("rank 0 has no socket")
	}
	var dialer net.Dialer
	dialed, err := dialer.DialContext(ctx, "unix", string(names[0]))
	if err != nil {
		return nil, fmt.Errorf("rank 0 is not on this host: %w", err)
	}
	conn := dialed.(*net.UnixConn)
	_ = conn.SetDeadline(time.Now().Add(greetingTime))
	err = c.introduce(conn, own)
	_ = conn.SetDeadline(time.Time{})
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

func (c Config) introduce(conn *net.UnixConn, own descriptors) error {
	if err := challenge.Present(conn, purpose, c.Token); err != nil {
		return err
	}
	hello := binary.LittleEndian.AppendUint32(nil, uint32(c.Rank))
	hello = binary.LittleEndian.AppendUint32(hello, uint32(c.Size))
	hello = append(hello, byte(len(c.Namespace)))
	if _, err := conn.Write(append(hello, c.Namespace...)); err != nil {
		return fmt.Errorf("introduce: %w", err)
	}
	var verdict [1]byte
	if _, err := io.ReadFull(conn, verdict[:]); err != nil {
		return fmt.Errorf("rank 0 turned rank %d away: %w", c.Rank, err)
	}
	if err := sendDescriptors(conn, []int{own.bell, own.process}); err != nil {
		return err
	}
	if _, err := io.ReadFull(conn, verdict[:]); err != nil {
		return fmt.Errorf("rank 0 did not take the descriptors of rank %d: %w", c.Rank, err)
	}
	return nil
}

// welcome is rank 0's half; it returns the rank and its descriptors.
func (c Config) welcome(conn *net.UnixConn) (rank int, fds []int, err error) {
	if err := challenge.Accept(conn, purpose, c.Token); err != nil {
		return 0, nil, err
	}
	var head [9]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return 0, nil, fmt.Errorf("no introduction: %w", err)
	}
	name := make([]byte, head[8])
	if _, err := io.ReadFull(conn, name); err != nil {
		return 0, nil, fmt.Errorf("no introduction: %w", err)
	}
	rank, size := int(binary.LittleEndian.Uint32(head[0:])), int(binary.LittleEndian.Uint32(head[4:]))
	switch {
	case string(name) != c.Namespace:
		return 0, nil, fmt.Errorf("this is job %q, not %q", c.Namespace, name)
	case size != c.Size || rank < 1 || rank >= c.Size:
		return 0, nil, fmt.Errorf("rank %d of %d does not belong to this world of %d", rank, size, c.Size)
	}
	if _, err := conn.Write([]byte{1}); err != nil {
		return 0, nil, err
	}
	fds, err = receiveDescriptors(conn, 2)
	return rank, fds, err
}

// reception is rank 0 while the others come.
type reception struct {
	Config
	listener *net.UnixListener
	greeting sync.WaitGroup
	places   chan struct{}

	mu    sync.Mutex
	open  map[*net.UnixConn]bool // being greeted
	over  bool
	conns []*net.UnixConn
	fds   [][]int
}

func (c Config) receive() (*reception, error) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: "@gradfusion-" + rand.Text()})
	if err != nil {
		return nil, fmt.Errorf("abstract unix socket: %w", err)
	}
	r := &reception{
		Config: c, listener: listener, places: make(chan struct{}, maxStrangers),
		open: map[*net.UnixConn]bool{}, conns: make([]*net.UnixConn, c.Size), fds: make([][]int, c.Size),
	}
	r.greeting.Go(r.accept)
	return r, nil
}

func (r *reception) accept() {
	for {
		r.places <- struct{}{} // every greeting ends soon, so this waits for no stranger for long
		conn, err := r.listener.AcceptUnix()
		if err != nil {
			<-r.places
			return
		}
		r.mu.Lock()
		if r.over {
			r.mu.Unlock()
			_ = conn.Close()
			<-r.places
			return
		}
		r.open[conn] = true
		r.mu.Unlock()
		r.greeting.Go(func() {
			r.greet(conn)
			<-r.places
		})
	}
}

func (r *reception) greet(conn *net.UnixConn) {
	_ = conn.SetDeadline(time.Now().Add(greetingTime))
	rank, fds, err := r.welcome(conn)
	_ = conn.SetDeadline(time.Time{})
	r.mu.Lock()
	delete(r.open, conn)
	over := r.over
	if err == nil && !over {
		if r.conns[rank] == nil {
			r.conns[rank], r.fds[rank] = conn, fds
			r.mu.Unlock()
			_, _ = conn.Write([]byte{1}) // the rank says itself when it does not get it
			return
		}
		err = fmt.Errorf("rank %d came twice", rank)
	}
	r.mu.Unlock()
	closeAll(fds)
	_ = conn.Close()
	if err != nil && !over && r.Refused != nil {
		r.Refused(err)
	}
}

// end turns away whoever has not been greeted.
func (r *reception) end() {
	_ = r.listener.Close()
	r.mu.Lock()
	r.over = true
	for conn := range r.open {
		_ = conn.Close()
	}
	r.mu.Unlock()
	r.greeting.Wait()
}

// close frees what the ranks left here.
func (r *reception) close() {
	for rank, conn := range r.conns {
		if conn != nil {
			_ = conn.Close()
			closeAll(r.fds[rank])
		}
	}
}
