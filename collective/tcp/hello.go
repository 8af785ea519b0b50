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
	purpose      = "GFPEER01" // names the protocol and its version
	namespaceMax = 255
	reasonMax    = 255
)

// hello is what a dialer says of itself once the token is proved:
// from u32, to u32, size u32, length u8, namespace. The answer is length u8,
// reason; an empty reason is yes.
type hello struct {
	from, to, size int
	namespace      string
}

func (h hello) append(b []byte) []byte {
	for _, n := range []int{h.from, h.to, h.size} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	b = append(b, byte(len(h.namespace)))
	return append(b, h.namespace...)
}

func readHello(r io.Reader) (h hello, err error) {
	var head [13]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return h, fmt.Errorf("no introduction: %w", err)
	}
	name := make([]byte, head[12])
	if _, err := io.ReadFull(r, name); err != nil {
		return h, fmt.Errorf("no introduction: %w", err)
	}
	return hello{
		from:      int(binary.LittleEndian.Uint32(head[0:])),
		to:        int(binary.LittleEndian.Uint32(head[4:])),
		size:      int(binary.LittleEndian.Uint32(head[8:])),
		namespace: string(name),
	}, nil
}

// objection is why a dialer does not belong here, empty when it does.
func (c Config) objection(h hello) string {
	switch {
	case h.namespace != c.Namespace:
		return fmt.Sprintf("this is job %q, not %q", clip(c.Namespace), clip(h.namespace))
	case h.size != c.Size:
		return fmt.Sprintf("this world has %d ranks, not %d", c.Size, h.size)
	case h.to != c.Rank:
		return fmt.Sprintf("this is rank %d, not %d", c.Rank, h.to)
	case h.from <= c.Rank || h.from >= c.Size:
		return fmt.Sprintf("rank %d does not dial rank %d of %d", h.from, c.Rank, c.Size)
	}
	return ""
}

func clip(s string) string { return s[:min(len(s), 64)] }

// welcome is the acceptor's half; the deadline is set.
func (c Config) welcome(conn net.Conn) (from int, err error) {
	if err := challenge.Accept(conn, purpose, c.Token); err != nil {
		return 0, err
	}
	h, err := readHello(conn)
	if err != nil {
		return 0, err
	}
	reason := c.objection(h)
	if _, err := conn.Write(append([]byte{byte(len(reason))}, reason...)); err != nil {
		return 0, fmt.Errorf("answer: %w", err)
	}
	if reason != "" {
		return 0, errors.New(reason)
	}
	return h.from, nil
}

// introduce is the dialer's half. refused says that trying again is useless.
func (c Config) introduce(conn net.Conn, to int) (refused bool, err error) {
	if err := challenge.Present(conn, purpose, c.Token); err != nil {
		return errors.Is(err, challenge.ErrToken) || errors.Is(err, challenge.ErrStranger), err
	}
	h := hello{from: c.Rank, to: to, size: c.Size, namespace: c.Namespace}
	if _, err := conn.Write(h.append(nil)); err != nil {
		return false, fmt.Errorf("introduce: %w", err)
	}
	var answer [1 + reasonMax]byte
	if _, err := io.ReadFull(conn, answer[:1]); err != nil {
		return false, fmt.Errorf("no answer: %w", err)
	}
	reason := answer[1 : 1+int(answer[0])]
	if _, err := io.ReadFull(conn, reason); err != nil {
		return false, fmt.Errorf("no answer: %w", err)
	}
	if len(reason) > 0 {
		return true, fmt.Errorf("it answered: %q", reason)
	}
	return false, nil
}
