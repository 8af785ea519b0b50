package tcp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective/internal/challenge"
)

// authority writes a certificate and key signed by parent, or by itself.
func authority(t *testing.T, dir, name string, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: parent == nil, BasicConstraintsValid: true}
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	require.NoError(t, err)
	secret, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	for file, block := range map[string]*pem.Block{
		name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "EC PRIVATE KEY", Bytes: secret},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600))
	}
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return cert, key
}

func TestCertificateFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca, key := authority(t, dir, "ca", nil, nil)
	authority(t, dir, "rank", ca, key)
	authority(t, dir, "stranger", nil, nil)
	file := func(name string) string { return filepath.Join(dir, name) }
	good := TLS{Cert: file("rank.pem"), Key: file("rank.key"), CA: file("ca.pem")}

	ranks, err := join(t, 2, func(c *Config) { c.TLS = &good })
	require.NoError(t, err)
	require.NoError(t, ranks[0].Send(t.Context(), 1, 1, []byte("x")))
	require.NoError(t, ranks[1].Recv(t.Context(), 0, 1, make([]byte, 1)))
	closeAll(t, ranks)

	for name, bad := range map[string]TLS{
		"cannot be checked": {Cert: file("stranger.pem"), Key: file("stranger.key"), CA: file("ca.pem")},
	} {
		_, err = join(t, 2, func(c *Config) {
			c.TLS, c.Refused, c.ConnectTimeout = &good, nil, patience
			if c.Rank == 1 {
				c.TLS = &bad
			}
		})
		require.ErrorContains(t, err, "certificate", name)
	}
	for says, bad := range map[string]TLS{
		"needed together":      {Cert: "x"},
		"nosuch.pem":           {Cert: "nosuch.pem", Key: "x", CA: "y"},
		"holds no certificate": {Cert: file("rank.pem"), Key: file("rank.key"), CA: file("rank.key")},
	} {
		_, err = Join(t.Context(), Config{Size: 2, Store: held(t), TLS: &bad, Token: "x"})
		require.ErrorContains(t, err, says)
	}
	_, err = Join(t.Context(), Config{Size: 2, Store: held(t), TLS: &TLS{}})
	require.ErrorContains(t, err, "GRADFUSION_TOKEN")
}

// TestManInTheMiddle: somebody who ends the encryption in between and passes all
// on, the proofs of the token too, convinces nobody.
func TestManInTheMiddle(t *testing.T) {
	secure, err := (&TLS{}).settings()
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	c := Config{Size: 2, Token: "secret", TLS: &TLS{}}.filled()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", listener.Addr().String())
		require.NoError(t, err)
		return conn
	}
	accept := func() net.Conn {
		conn, err := listener.Accept()
		require.NoError(t, err)
		return conn
	}
	victim, evilNear := dial(), accept()
	evilFar, server := dial(), accept()
	near, far := tls.Server(evilNear, secure.server), tls.Client(evilFar, secure.client)
	var all errgroup.Group
	all.Go(func() error { _, _ = io.Copy(far, near); return far.Close() })
	all.Go(func() error { _, _ = io.Copy(near, far); return near.Close() })
	all.Go(func() error {
		conn := tls.Server(server, secure.server)
		_, err := c.welcome(conn)
		_ = conn.Close()
		require.ErrorIs(t, err, challenge.ErrToken)
		return nil
	})
	conn := tls.Client(victim, secure.client)
	_, err = c.introduce(conn, hello{})
	require.ErrorIs(t, err, challenge.ErrToken)
	_ = conn.Close()
	require.NoError(t, all.Wait())
}

// TestEncryptionIsAgreed: a rank without it is turned away, on either side.
func TestEncryptionIsAgreed(t *testing.T) {
	t.Parallel()
	for plain := range 2 {
		_, err := join(t, 2, func(c *Config) {
			c.Refused, c.ConnectTimeout = nil, patience
			if c.Rank != plain {
				c.TLS = &TLS{}
			}
		})
		require.Error(t, err)
	}
}
