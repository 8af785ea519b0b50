//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// coded composes an all-reduce whose values travel encoded: an all-to-all of
// encoded slices, each summed in float32 by its owner, to the owner's own and in
// the order of ranks, and an all-gather of the encoded sums, which all decode. The
// passes are waited for, so that a codec is used by one goroutine at a time.
func (c *Comm) coded(p *pending) error {
	call := &p.call
	in, out, codec := call.In, output(call), call.Codec
	if err := collective.ValidateCoded(call); err != nil {
		return err
	}
	switch {
	case len(c.ranks) == 1 || call.AcrossHosts && len(c.hosts) == 1:
		return c.whole(p)
	case in.Len == 0:
		p.end(nil)
		return nil
	case call.AcrossHosts && len(c.hosts) < len(c.ranks):
		return c.codedAcrossHosts(p)
	}
	if t, ok := c.halvesOf(call); ok {
		return c.halved(p, t)
	}
	n := len(c.ranks)
	bounds := plan.Cut(in.Len, n)
	encoded := make([]int, n+1)
	for r := range n {
		encoded[r+1] = encoded[r] + codec.EncodedLen(bounds[r+1]-bounds[r])
	}
	lo, hi := bounds[c.rank], bounds[c.rank+1]
	size := codec.EncodedLen(hi - lo)
	equal := make([]int, n+1)
	for r := range equal {
		equal[r] = r * size
	}
	sum := make([]byte, size)
	first := c.unequal(device.U8, countsOf(encoded), countsOf(equal))
	first.inBytes, first.outBytes = encoded[n], n*size
	first.fill = func(host []byte) {
		for r := range n {
			if r != c.rank {
				codec.Encode(host[encoded[r]:encoded[r+1]], in.F32()[bounds[r]:bounds[r+1]], bounds[r])
			}
		}
	}
	first.take = func(host []byte) error {
		own := append([]float32(nil), in.F32()[lo:hi]...)
		codec.Begin(own, lo)
		for r := range n {
			if r != c.rank {
				codec.DecodeAdd(own, host[equal[r]:equal[r+1]])
			}
		}
		if call.Op == collective.Mean {
			collective.Divide(device.FromF32(own), n)
		}
		codec.EncodeSum(sum, own, lo)
		return nil
	}
	if err := c.through(p, first); err != nil {
		return err
	}
	all := device.FromU8(make([]byte, encoded[n]))
	second := c.gathering(all, device.FromU8(sum), encoded)
	second.last = true
	p.sent, p.received = first.inBytes+second.inBytes, first.outBytes+second.outBytes
	if err := c.through(p, second); err != nil {
		return err
	}
	for r := range n {
		codec.Decode(out.F32()[bounds[r]:bounds[r+1]], all.Bytes()[encoded[r]:encoded[r+1]])
	}
	p.end(nil)
	return nil
}
