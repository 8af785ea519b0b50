package collective

import (
	"context"

	"github.com/gradfusion/gradfusion/device"
)

// Tag tells messages between one pair of ranks apart. The transport matches a
// receive with the message of equal sender and tag; messages of different tags
// may arrive in any order, those of one tag arrive in the order of sending.
type Tag uint64

// EagerSize is the length up to which Transport.Send does not wait for the
// receiver.
const EagerSize = 64 << 10

// Transport moves bytes between the ranks of a world. It knows ranks, tags and
// bytes and nothing else: not calls, groups or types. All methods are safe for
// concurrent use.
//
// After the first error from the network, and after Close, every pending and
// later call returns an error at once; it wraps ErrClosed or a *LinkError.
type Transport interface {
	Rank() int
	Size() int
	// Hosts lists the ranks by host, hosts in the order of their lowest rank.
	Hosts() [][]int
	// Processes lists the ranks by process; nil: each rank is its own.
	Processes() [][]int
	// Segment is the length of the messages in which a Group sends a large value to
	// a peer, the same at both ends: a multiple of 512 bytes. Values are passed on
	// and reduced message by message, so a small one is good where a message costs
	// little; where each waits for a round trip a large one is.
	Segment(peer int) int
	// Send hands b to rank to. It returns when b may be reused: small messages
	// (up to EagerSize) are copied or written at once and never wait for the
	// receiver, large ones may. to may be the own rank.
	Send(ctx context.Context, to int, tag Tag, b []byte) error
	// SendAsReady is Send of bytes that are still being made: ready waits until
	// more than at of them are there and returns how many are. It is called on the
	// goroutine of the caller, with what it returned last, from 0 until it returns
	// len(b); its error takes the message back as the end of ctx does. A transport
	// that gains nothing by that leaves it to SendWhenReady.
	SendAsReady(ctx context.Context, to int, tag Tag, b []byte, ready func(at int) (int, error)) error
	// SendFilled is Send of a small message that fill makes, once: it is given memory
	// as long as stage and returns the part of it, from its start, that is the message,
	// at most EagerSize. A transport that keeps messages gives its own memory, which
	// saves a copy; others leave it to SendStaged.
	SendFilled(ctx context.Context, to int, tag Tag, stage []byte, fill func([]byte) []byte) error
	// Recv fills b with the message of that tag from rank from. A message of
	// another length is a *LengthError with the message's head, and the message
	// is consumed.
	Recv(ctx context.Context, from int, tag Tag, b []byte) error
	// RecvInPlace lends the received bytes to use, without a copy, when the
	// transport can (offered true); otherwise it returns false at once and has
	// consumed nothing. The bytes are invalid after use returns. A message up to
	// EagerSize is lent at once, a larger one at once or in pieces, in order, of
	// multiples of 512 bytes but for the last; the caller counts them. use may be
	// called on another goroutine while RecvInPlace waits; after its first error
	// it is not called again.
	RecvInPlace(ctx context.Context, from int, tag Tag, use func([]byte) error) (offered bool, err error)
	// Register is collective over the world: every rank passes a buffer of the
	// same size and gets everyone's as memory that may be read and written,
	// peers[r] being rank r's. A transport that shares no memory returns nil
	// without communicating.
	Register(ctx context.Context, b device.Buf) (peers []device.Buf, err error)
	// Direct returns what runs calls of a group on shared memory, or nil where
	// the transport has none. ranks are the group's, in its order; each of them
	// calls it with the same id, which no other open group has.
	Direct(id uint64, ranks []int) Direct
	// Close ends all traffic, waits for the transport's goroutines and frees
	// what it holds. Peers see a *LinkError unless they closed too.
	Close() error
}

// SendStaged is Transport.SendFilled that has stage filled and sends it.
func SendStaged(ctx context.Context, t Transport, to int, tag Tag, stage []byte, fill func([]byte) []byte) error {
	return t.Send(ctx, to, tag, fill(stage))
}

// SendWhenReady is Transport.SendAsReady that sends when all bytes are there.
func SendWhenReady(ctx context.Context, t Transport, to int, tag Tag, b []byte, ready func(at int) (int, error)) error {
	for at := 0; at < len(b); {
		n, err := ready(at)
		if err != nil {
			return err
		}
		at = n
	}
	return t.Send(ctx, to, tag, b)
}
