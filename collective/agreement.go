package collective

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
)

// agreedLength is how much of a setting is told.
const agreedLength = 14

// AgreeOnPacking is collective over a transport that no group uses yet. setting is
// what the user has set on this rank, in up to 14 bytes. Where ranks are set to
// different things, which would wait for each other in calls, all get an error that
// names two of them.
func AgreeOnPacking(ctx context.Context, t Transport, setting string) error {
	own := make([]byte, agreedLength)
	copy(own, setting)
	// The answer: a rank that is set to something else than rank 0, or 0, and what
	// both are set to.
	answer := make([]byte, 4+2*agreedLength)
	err := throughFirst(ctx, t, "compares collective.pack", own, answer, func(r int, theirs []byte) {
		if binary.LittleEndian.Uint32(answer) == 0 && !bytes.Equal(theirs, own) {
			binary.LittleEndian.PutUint32(answer, uint32(r))
			copy(answer[4:], own)
			copy(answer[4+agreedLength:], theirs)
		}
	})
	if err != nil {
		return err
	}
	return disagreement(answer)
}

// throughFirst has rank 0 take what all others give, in as many bytes as own has, in
// the order of ranks, and tell them the answer that it has made of that. does is what
// an error says of it.
func throughFirst(ctx context.Context, t Transport, does string, own, answer []byte, take func(rank int, theirs []byte)) error {
	with := func(peer int, err error) error {
		return fmt.Errorf("rank %d %s with rank %d: %w", t.Rank(), does, peer, err)
	}
	if t.Rank() != 0 {
		if err := t.Send(ctx, 0, linkTag, own); err != nil {
			return with(0, err)
		}
		if err := t.Recv(ctx, 0, linkTag, answer); err != nil {
			return with(0, err)
		}
		return nil
	}
	theirs := make([]byte, len(own))
	for r := 1; r < t.Size(); r++ {
		if err := t.Recv(ctx, r, linkTag, theirs); err != nil {
			return with(r, err)
		}
		take(r, theirs)
	}
	for r := 1; r < t.Size(); r++ {
		if err := t.Send(ctx, r, linkTag, answer); err != nil {
			return with(r, err)
		}
	}
	return nil
}

func disagreement(answer []byte) error {
	rank := binary.LittleEndian.Uint32(answer)
	if rank == 0 {
		return nil
	}
	text := func(at int) []byte { return bytes.TrimRight(answer[at:at+agreedLength], "\x00") }
	return fmt.Errorf("collective.pack is %s on rank 0 and %s on rank %d; it has to be the same on all ranks", text(4), text(4+agreedLength), rank)
}
