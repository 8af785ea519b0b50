package mixed

import (
	"context"
	"crypto/rand"
	"net"
)

// bell is an abstract unix socket that ranks of this host can connect to. It
// needs no door: a connection that waits in its queue has proved all.
type bell struct{ listener net.Listener }

func openBell() bell {
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "unix", "@gradfusion-host-"+rand.Text())
	if err != nil { // a system that forbids it: nobody shares this rank's host
		return bell{}
	}
	return bell{listener}
}

// name is empty when there is no socket.
func (b bell) name() string {
	if b.listener == nil {
		return ""
	}
	return b.listener.Addr().String()
}

func (b bell) close() {
	if b.listener != nil {
		_ = b.listener.Close()
	}
}

// answers reports whether the bell of that name is on this host.
func answers(ctx context.Context, name string) bool {
	if name == "" {
		return false
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", name)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
