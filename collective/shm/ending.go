//go:build linux && (amd64 || arm64)

package shm

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/gradfusion/gradfusion/collective"
)

// watch fails the transport when peer's process dies.
func (t *Transport) watch(peer int) {
	raw, err := t.processes[peer].SyscallConn()
	if err != nil {
		return
	}
	looked := false
	err = raw.Read(func(uintptr) bool {
		before := looked
		looked = true
		return before // the first look asks the runtime to wait
	})
	if err != nil { // the transport closes
		return
	}
	t.poll(true) // it may have said goodbye
	t.fail(peer, errDied)
}

// fail ends all calls because peer was lost, unless it had said goodbye, and
// has the other ranks look for themselves.
func (t *Transport) fail(peer int, err error) {
	l := t.links[peer]
	l.in.mu.Lock()
	left := l.in.left != nil
	l.in.mu.Unlock()
	if left {
		return
	}
	lost := l.lost(err)
	if !t.Fail(lost) {
		return
	}
	if atomicAt(t.control, abortAt).CompareAndSwap(0, uint32(peer+1)) {
		for r := range t.size {
			if r != t.rank {
				t.ring(r)
			}
		}
	}
	if t.lost != nil {
		t.lost(lost)
	}
}

// Fail ends all pending and later calls with lost, which names a rank that need
// not be one of this transport's. It reports whether that was the first loss.
func (t *Transport) Fail(lost *collective.LinkError) bool {
	t.mu.Lock()
	if t.failure != nil {
		t.mu.Unlock()
		return false
	}
	t.culprit, t.failure = lost.Peer, lost
	for d := range t.domains {
		d.stop()
	}
	t.mu.Unlock()
	for _, l := range t.links {
		l.abandon(lost)
	}
	return true
}

// Close says goodbye to the peers, waits for all goroutines and calls, and
// unmaps the memory, also what Comm.Alloc gave out.
func (t *Transport) Close() error {
	t.closing.Do(t.close)
	return nil
}

func (t *Transport) close() {
	t.closed.Store(true)
	t.mu.Lock()
	culprit, failed := t.culprit, t.failure != nil
	for d := range t.domains {
		d.stop()
	}
	t.mu.Unlock()
	timer := time.NewTimer(lingerTime)
	defer timer.Stop()
	for _, l := range t.links {
		l.abandon(t.closedError())
		if l.peer == t.rank {
			continue
		}
		if drained := l.sayGoodbye(culprit); drained != nil && !failed {
			select {
			case <-drained:
			case <-timer.C:
				failed = true // do not wait again
			}
		}
	}
	t.stopping.Store(true)
	t.ring(t.rank)
	for _, f := range t.processes {
		_ = f.SetReadDeadline(time.Unix(1, 0))
	}
	t.running.Wait()
	t.calls.Lock()
	defer t.calls.Unlock()
	t.release()
}

// sayGoodbye sends the last frame; drained is nil when all frames are in the
// ring.
func (l *link) sayGoodbye(culprit int) (drained <-chan struct{}) {
	o := &l.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.left != nil {
		return nil
	}
	l.emit(frame{kind: frameGoodbye, tag: collective.Tag(culprit + 1)}, nil)
	if o.waiting.empty() {
		return nil
	}
	o.drained = make(chan struct{})
	return o.drained
}

// release frees what the transport holds.
func (t *Transport) release() {
	if regions := t.regions.Load(); regions != nil {
		for _, r := range *regions {
			_ = unix.Munmap(r.mapped)
		}
		t.regions.Store(nil)
	}
	t.mu.Lock()
	for d := range t.domains {
		d.unmap()
	}
	t.mu.Unlock()
	if t.control != nil {
		_ = unix.Munmap(t.control)
		t.control = nil
	}
	for _, fd := range t.bells {
		_ = unix.Close(fd)
	}
	for _, f := range t.processes {
		_ = f.Close()
	}
	_ = t.bell.Close()
	_ = t.memory.Close()
}
