package parallel

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"slices"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// Named is a tensor with the name that it has in checkpoints and hashes.
type Named struct {
	Name  string
	Shape []int
	Buf   device.Buf
}

// Hash returns the SHA-256, in hexadecimal, over names, shapes and bytes in the
// order of the names.
func Hash(tensors []Named) string {
	sorted := slices.Clone(tensors)
	slices.SortFunc(sorted, func(a, b Named) int { return cmp.Compare(a.Name, b.Name) })
	h := NewHasher()
	for _, t := range sorted {
		h.Add(t)
	}
	return h.Sum()
}

// Hasher is Hash of tensors that come one by one, in the order of their names.
type Hasher struct{ sum hash.Hash }

// NewHasher returns a Hasher of nothing.
func NewHasher() *Hasher { return &Hasher{sha256.New()} }

// Add adds the tensor whose name follows.
func (h *Hasher) Add(t Named) {
	writeHeader(h.sum, t)
	h.sum.Write(t.Buf.Bytes())
}

// Sum returns the hash of what was added, in hexadecimal.
func (h *Hasher) Sum() string { return hex.EncodeToString(h.sum.Sum(nil)) }

func writeHeader(h hash.Hash, t Named) {
	var n [8]byte
	h.Write([]byte(t.Name))
	for _, d := range append([]int{len(t.Name), int(t.Buf.Type), len(t.Shape)}, t.Shape...) {
		binary.LittleEndian.PutUint64(n[:], uint64(d))
		h.Write(n[:])
	}
}

// Params lists parameters as named tensors.
func Params(params []*nn.Param) []Named {
	out := make([]Named, len(params))
	for i, p := range params {
		out[i] = Named{p.Name, p.Shape, p.Value}
	}
	return out
}

// States lists buffers as named tensors.
func States(states []nn.State) []Named {
	out := make([]Named, len(states))
	for i, s := range states {
		out[i] = Named{s.Name, []int{s.Buf.Len}, s.Buf}
	}
	return out
}

// ErrDiffer is wrapped by the error that names what differs between ranks.
var ErrDiffer = errors.New("the ranks differ")

// synchronise makes all ranks of a stage hold its rank 0's parameters and buffers.
func (g *GradFusion) synchronise(ctx context.Context, s *stage) error {
	if s.Comm.Size() == 1 {
		return checkMasters(s)
	}
	tensors := append(Params(s.params), States(s.states)...)
	if err := compareStructure(ctx, s.Comm, g.structure(s)); err != nil {
		return err
	}
	if err := checkMasters(s); err != nil {
		return err
	}
	// Weights that come from one seed are equal already, and need not travel.
	if r, err := firstDifference(ctx, s.Comm, fingerprint(tensors)); err != nil || r < 0 {
		return err
	}
	var works []*collective.Work
	for _, t := range tensors {
		works = append(works, s.Comm.Start(ctx, collective.Call{Kind: plan.Broadcast, In: t.Buf, Label: t.Name}))
	}
	for _, w := range works {
		if err := w.Wait(ctx); err != nil {
			return fmt.Errorf("taking rank 0's parameters: %w", err)
		}
	}
	return g.verifyStage(ctx, s)
}

// verify compares parameters and buffers over the ranks and names the first
// that differs.
func (g *GradFusion) verify(ctx context.Context) error {
	if err := g.Complete(ctx); err != nil {
		return err
	}
	for _, s := range g.stages {
		if err := g.verifyStage(ctx, s); err != nil {
			return g.stageNamed(s, err)
		}
	}
	for _, t := range g.ties {
		if err := t.verify(ctx, g.step); err != nil {
			return err
		}
	}
	return nil
}

func (g *GradFusion) verifyStage(ctx context.Context, s *stage) error {
	tensors := append(Params(s.reducer.params), States(s.states)...)
	name, r, err := firstTensor(ctx, s.Comm, tensors)
	if err != nil || r < 0 {
		return err
	}
	return fmt.Errorf("%w after step %d: %s on rank %d is not what it is on rank 0", ErrDiffer, g.step, name, r)
}

// firstTensor compares tensors over the ranks: the name of the first one that
// differs, and the lowest rank where it is not rank 0's, or -1.
func firstTensor(ctx context.Context, comm collective.Comm, tensors []Named) (name string, rank int, err error) {
	if rank, err = firstDifference(ctx, comm, fingerprint(tensors)); err != nil || rank < 0 {
		return "", rank, err
	}
	for _, t := range tensors {
		r, err := firstDifference(ctx, comm, fingerprint([]Named{t}))
		if err != nil || r >= 0 {
			return t.Name, r, err
		}
	}
	return "tensor", rank, nil // changed since
}

// fingerprint tells contents apart that differ by accident: two checksums of each
// tensor, which the processor computes as fast as it reads, where a hash that
// stands up to an adversary takes a large part of a start.
func fingerprint(tensors []Named) []byte {
	castagnoli, sums := crc32.MakeTable(crc32.Castagnoli), sha256.New()
	var sum [8]byte
	for _, t := range tensors {
		b := t.Buf.Bytes()
		binary.LittleEndian.PutUint32(sum[:], crc32.Checksum(b, castagnoli))
		binary.LittleEndian.PutUint32(sum[4:], crc32.ChecksumIEEE(b))
		sums.Write(sum[:])
	}
	return sums.Sum(nil)
}

// firstDifference compares a digest over the ranks: the lowest rank whose digest
// is not rank 0's, or -1.
func firstDifference(ctx context.Context, comm collective.Comm, digest []byte) (int, error) {
	n := comm.Size()
	all := make([]byte, n*len(digest))
	call := collective.Call{Kind: plan.AllGather, In: device.FromU8(digest), Out: device.FromU8(all), Label: "fingerprint"}
	if err := comm.Start(ctx, call).Wait(ctx); err != nil {
		return -1, fmt.Errorf("comparing the ranks: %w", err)
	}
	for r := 1; r < n; r++ {
		if string(all[r*len(digest):(r+1)*len(digest)]) != string(all[:len(digest)]) {
			return r, nil
		}
	}
	return -1, nil
}
