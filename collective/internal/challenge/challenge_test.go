package challenge

import (
	"bytes"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

const purpose = "TESTING1"

// meet runs both halves over a pipe and returns the acceptor's and the dialer's
// error.
func meet(t *testing.T, acceptor, dialer func(net.Conn) error) (error, error) {
	t.Helper()
	a, d := net.Pipe()
	result := make(chan error, 1)
	go func() {
		err := acceptor(a)
		_ = a.Close()
		result <- err
	}()
	dialed := dialer(d)
	_ = d.Close()
	return <-result, dialed
}

func TestTokens(t *testing.T) {
	for _, c := range []struct {
		name             string
		acceptor, dialer string
		want             error
	}{
		{"equal", "secret", "secret", nil},
		{"empty", "", "", nil},
		{"different", "secret", "guess", ErrToken},
		{"missing", "secret", "", ErrToken},
	} {
		t.Run(c.name, func(t *testing.T) {
			byAcceptor, byDialer := meet(t,
				func(conn net.Conn) error { return Accept(conn, purpose, c.acceptor) },
				func(conn net.Conn) error { return Present(conn, purpose, c.dialer) })
			require.ErrorIs(t, byAcceptor, c.want)
			require.ErrorIs(t, byDialer, c.want)
		})
	}
}

func TestStrangers(t *testing.T) {
	byAcceptor, _ := meet(t,
		func(conn net.Conn) error { return Accept(conn, purpose, "") },
		func(conn net.Conn) error { return Present(conn, "TESTING2", "") })
	require.ErrorIs(t, byAcceptor, ErrStranger)

	// An acceptor that says yes without knowing the token is not believed.
	_, byDialer := meet(t,
		func(conn net.Conn) error {
			var hello [helloLen]byte
			_, _ = io.ReadFull(conn, hello[:])
			_, _ = conn.Write(hello[:])
			var proof [32]byte
			_, _ = io.ReadFull(conn, proof[:])
			_, err := conn.Write(append([]byte{accepted}, proof[:]...))
			return err
		},
		func(conn net.Conn) error { return Present(conn, purpose, "secret") })
	require.ErrorIs(t, byDialer, ErrToken)
}

type garbage struct{ *bytes.Reader }

func (garbage) Write(b []byte) (int, error) { return len(b), nil }

func FuzzAccept(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\nHost: here\r\n\r\n"))
	f.Add([]byte(purpose))
	f.Add(append([]byte(purpose), make([]byte, 100)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		require.Error(t, Accept(garbage{bytes.NewReader(b)}, purpose, "secret"))
		require.Error(t, Present(garbage{bytes.NewReader(b)}, purpose, "secret"))
	})
}
