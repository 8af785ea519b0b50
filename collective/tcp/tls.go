package tcp

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// TLS says how connections are encrypted, always with TLS 1.3. Its zero value
// makes a certificate of the process's own, which nobody has to know: the proof
// of the job's token covers the encrypted channel (RFC 9266), so that nobody
// without the token can be at either end or in between. It wants a token.
//
// With files, each rank shows the certificate Cert and checks that the peer's is
// signed by CA, in addition to the token.
type TLS struct {
	Cert, Key string // PEM files
	CA        string
}

// Check reads the files, and says what is wrong with them.
func (t *TLS) Check() error {
	_, err := t.settings()
	return err
}

// settings are the two sides of encrypted connections.
type settings struct{ server, client *tls.Config }

func (t *TLS) settings() (*settings, error) {
	if t == nil {
		return nil, nil
	}
	base := &tls.Config{MinVersion: tls.VersionTLS13, DynamicRecordSizingDisabled: true, SessionTicketsDisabled: true}
	if t.Cert == "" && t.Key == "" && t.CA == "" {
		own, err := selfSigned()
		if err != nil {
			return nil, fmt.Errorf("tcp: tls: %w", err)
		}
		base.Certificates = []tls.Certificate{own}
		client := base.Clone()
		client.InsecureSkipVerify = true //nolint:gosec // the token's proof over the channel takes its place
		return &settings{base, client}, nil
	}
	if t.Cert == "" || t.Key == "" || t.CA == "" {
		return nil, errors.New("tcp: tls: cert, key and ca are needed together")
	}
	own, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("tcp: tls: %w", err)
	}
	pem, err := os.ReadFile(t.CA)
	if err != nil {
		return nil, fmt.Errorf("tcp: tls: %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("tcp: tls: %s holds no certificate", t.CA)
	}
	base.Certificates = []tls.Certificate{own}
	server, client := base.Clone(), base.Clone()
	server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, authorities
	// Ranks are found at addresses that the store tells, not by name: any
	// certificate of the authority will do, as on the server's side.
	client.InsecureSkipVerify = true //nolint:gosec // VerifyConnection checks the chain
	client.VerifyConnection = func(state tls.ConnectionState) error {
		between := x509.NewCertPool()
		for _, c := range state.PeerCertificates[1:] {
			between.AddCert(c)
		}
		_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
			Roots: authorities, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
		})
		return err
	}
	return &settings{server, client}, nil
}

// selfSigned makes a certificate for as long as a process may live.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "gradfusion rank"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().AddDate(10, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// secret is what both ends of a connection prove to know: the token, or where
// the connection is encrypted the token together with what only these two ends
// of it have in common.
func (c Config) secret(conn net.Conn) (string, error) {
	encrypted, ok := conn.(*tls.Conn)
	if !ok {
		return c.Token, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), greetingTime)
	defer cancel()
	if err := encrypted.HandshakeContext(ctx); err != nil {
		return "", fmt.Errorf("encryption: %w", err)
	}
	state := encrypted.ConnectionState()
	binding, err := state.ExportKeyingMaterial("EXPORTER-Channel-Binding", nil, 32)
	if err != nil {
		return "", fmt.Errorf("encryption: %w", err)
	}
	mac := hmac.New(sha256.New, []byte(c.Token))
	mac.Write(binding)
	return string(mac.Sum(nil)), nil
}

// underlying is the connection under the encryption.
func underlying(conn net.Conn) net.Conn {
	if encrypted, ok := conn.(*tls.Conn); ok {
		return encrypted.NetConn()
	}
	return conn
}
