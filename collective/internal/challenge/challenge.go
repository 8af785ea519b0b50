package challenge

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
)

// PurposeLen is the length of a purpose.
const PurposeLen = 8

const (
	nonceLen = 16
	helloLen = PurposeLen + nonceLen

	refused  = 0
	accepted = 1
)

// ErrToken says that the two ends hold different job tokens.
var ErrToken = errors.New("the job tokens differ (GRADFUSION_TOKEN must be the same on every rank)")

// ErrStranger says that the other end speaks another protocol or version.
var ErrStranger = errors.New("the other end does not speak this protocol or version")

// Accept does the acceptor's half. After an error the dialer has been told what
// it may know.
func Accept(conn io.ReadWriter, purpose, token string) error {
	var theirs [helloLen]byte
	if _, err := io.ReadFull(conn, theirs[:]); err != nil {
		return fmt.Errorf("no greeting: %w", err)
	}
	if string(theirs[:PurposeLen]) != purpose {
		return fmt.Errorf("greeted with %q: %w", theirs[:PurposeLen], ErrStranger)
	}
	ours, err := greeting(purpose)
	if err != nil {
		return err
	}
	if _, err := conn.Write(ours[:]); err != nil {
		return fmt.Errorf("greet: %w", err)
	}
	var proof [sha256.Size]byte
	if _, err := io.ReadFull(conn, proof[:]); err != nil {
		return fmt.Errorf("no proof of the token: %w", err)
	}
	var answer [1 + sha256.Size]byte
	if !hmac.Equal(proof[:], sign(token, "dialer", theirs, ours)) {
		answer[0] = refused
		_, _ = conn.Write(answer[:]) // a courtesy: the error is ErrToken either way
		return ErrToken
	}
	answer[0] = accepted
	copy(answer[1:], sign(token, "acceptor", theirs, ours))
	if _, err := conn.Write(answer[:]); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}

// Present does the dialer's half.
func Present(conn io.ReadWriter, purpose, token string) error {
	ours, err := greeting(purpose)
	if err != nil {
		return err
	}
	if _, err := conn.Write(ours[:]); err != nil {
		return fmt.Errorf("greet: %w", err)
	}
	var theirs [helloLen]byte
	if _, err := io.ReadFull(conn, theirs[:]); err != nil {
		return fmt.Errorf("no greeting: %w", err)
	}
	if string(theirs[:PurposeLen]) != purpose {
		return fmt.Errorf("greeted with %q: %w", theirs[:PurposeLen], ErrStranger)
	}
	if _, err := conn.Write(sign(token, "dialer", ours, theirs)); err != nil {
		return fmt.Errorf("prove: %w", err)
	}
	var answer [1 + sha256.Size]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return fmt.Errorf("no verdict: %w", err)
	}
	if answer[0] != accepted || !hmac.Equal(answer[1:], sign(token, "acceptor", ours, theirs)) {
		return ErrToken
	}
	return nil
}

func greeting(purpose string) (hello [helloLen]byte, err error) {
	if len(purpose) != PurposeLen {
		return hello, fmt.Errorf("purpose %q is not %d bytes long", purpose, PurposeLen)
	}
	copy(hello[:], purpose)
	_, err = rand.Read(hello[PurposeLen:])
	return hello, err
}

func sign(token, role string, dialer, acceptor [helloLen]byte) []byte {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte(role))
	mac.Write(dialer[:])
	mac.Write(acceptor[:])
	return mac.Sum(nil)
}
