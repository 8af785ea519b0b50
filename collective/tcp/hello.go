package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/gradfusion/gradfusion/collective/internal/challenge"
)

const (
	purpose      = "GFPEER02" // names the protocol and its version
	namespaceMax = 255
	reasonMax    = 255
)

// wish is what a dialer wants.
type wish uint8

const (
	wishJoin   wish = iota // the first connection of a socket
	wishResume             // to go on with a socket whose connection broke
	wishProbe              // to learn whether the acceptor lives, and that its side broke
	wishEnd
)

// hello is what a dialer says of itself once the token is proved: wish u8,
// index u8, sockets u8, checksum u8, from u32, to u32, size u32, handled u32,
// length u8, namespace. The answer is length u8, reason, handled u32; an empty
// reason is yes.
type hello struct {
	wish           wish
	index, sockets int
	checksum       bool
	from, to, size int
	handled        uint32 // frames of the acceptor that the dialer has handled
	namespace      string
}

const helloHead = 4 + 4*4 + 1

func (h hello) append(b []byte) []byte {
	checksum := byte(0)
	if h.checksum {
		checksum = 1
	}
	b = append(b, byte(h.wish), byte(h.index), byte(h.sockets), checksum)
	for _, n := range []uint32{uint32(h.from), uint32(h.to), uint32(h.size), h.handled} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	b = append(b, byte(len(h.namespace)))
	return append(b, h.namespace...)
}

func readHello(r io.Reader) (h hello, err error) {
	var head [helloHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return h, fmt.Errorf("no introduction: %w", err)
	}
	name := make([]byte, head[helloHead-1])
	if _, err := io.ReadFull(r, name); err != nil {
		return h, fmt.Errorf("no introduction: %w", err)
	}
	return hello{
		wish:      wish(head[0]),
		index:     int(head[1]),
		sockets:   int(head[2]),
		checksum:  head[3] != 0,
		from:      int(binary.LittleEndian.Uint32(head[4:])),
		to:        int(binary.LittleEndian.Uint32(head[8:])),
		size:      int(binary.LittleEndian.Uint32(head[12:])),
		handled:   binary.LittleEndian.Uint32(head[16:]),
		namespace: string(name),
	}, nil
}

// objection is why a dialer does not belong here, empty when it does.
func (c Config) objection(h hello) string {
	onOff := map[bool]string{true: "on", false: "off"}
	switch {
	case h.wish >= wishEnd:
		return "unknown wish"
	case h.namespace != c.Namespace:
		return fmt.Sprintf("this is job %q, not %q", clip(c.Namespace), clip(h.namespace))
	case h.size != c.Size:
		return fmt.Sprintf("this world has %d ranks, not %d", c.Size, h.size)
	case h.to != c.Rank:
		return fmt.Sprintf("this is rank %d, not %d", c.Rank, h.to)
	case h.from < 0 || h.from >= c.Size || !c.connects(h.from) || h.from < c.Rank && h.wish != wishProbe:
		return fmt.Sprintf("rank %d does not dial rank %d of %d", h.from, c.Rank, c.Size)
	case h.sockets != c.Sockets || h.index >= c.Sockets:
		return fmt.Sprintf("this world has %d sockets per peer, not %d", c.Sockets, h.sockets)
	case h.checksum != c.Checksum:
		return fmt.Sprintf("this world has checksums %s, not %s", onOff[c.Checksum], onOff[h.checksum])
	}
	return ""
}

func clip(s string) string { return s[:min(len(s), 64)] }

// welcome is the acceptor's half up to the answer; the deadline is set.
func (c Config) welcome(conn net.Conn) (hello, error) {
	token, err := c.secret(conn)
	if err != nil {
		return hello{}, err
	}
	if err := challenge.Accept(conn, purpose, token); err != nil {
		return hello{}, err
	}
	h, err := readHello(conn)
	if err != nil {
		return hello{}, err
	}
	if reason := c.objection(h); reason != "" {
		_ = answer(conn, reason, 0)
		return hello{}, errors.New(reason)
	}
	return h, nil
}

// answer ends the acceptor's half.
func answer(conn net.Conn, reason string, handled uint32) error {
	reason = reason[:min(len(reason), reasonMax)]
	b := append([]byte{byte(len(reason))}, reason...)
	if _, err := conn.Write(binary.LittleEndian.AppendUint32(b, handled)); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}

// errRefused is wrapped by introduce's error when trying again is useless.
var errRefused = errors.New("refused")

// introduce is the dialer's half; it returns how many frames the acceptor has
// handled.
func (c Config) introduce(conn net.Conn, h hello) (uint32, error) {
	token, err := c.secret(conn)
	if err != nil {
		return 0, err
	}
	if err := challenge.Present(conn, purpose, token); err != nil {
		if errors.Is(err, challenge.ErrToken) || errors.Is(err, challenge.ErrStranger) {
			err = fmt.Errorf("%w: %w", errRefused, err)
		}
		return 0, err
	}
	h.from, h.size, h.namespace = c.Rank, c.Size, c.Namespace
	h.sockets, h.checksum = c.Sockets, c.Checksum
	if _, err := conn.Write(h.append(nil)); err != nil {
		return 0, fmt.Errorf("introduce: %w", err)
	}
	var got [1 + reasonMax + 4]byte
	if _, err := io.ReadFull(conn, got[:1]); err != nil {
		return 0, fmt.Errorf("no answer: %w", err)
	}
	n := int(got[0])
	if _, err := io.ReadFull(conn, got[1:1+n+4]); err != nil {
		return 0, fmt.Errorf("no answer: %w", err)
	}
	if n > 0 {
		return 0, fmt.Errorf("%w: it answered: %q", errRefused, got[1:1+n])
	}
	return binary.LittleEndian.Uint32(got[1:]), nil
}
