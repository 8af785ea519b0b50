//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"slices"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// crossing is a call of which only what goes from host to host is encoded. The
// vector is cut in columns, as many as the smallest host has ranks, and each column
// in parts, one for each host. On every host, column j belongs to the host's rank
// in place j; a rank in no column's place only gives and takes. There are four
// all-to-alls of unequal parts, in which a rank sends nothing to most others:
//
//	gather:   on a host, all send column j to its rank, which adds them in float32
//	exchange: ranks of a column send each other's parts, encoded; each sums its own
//	results:  and sends them the sum, encoded, which all of them decode
//	spread:   on a host, the column's rank sends the column to all
type crossing struct {
	*Comm
	p           *pending
	site, place int
	columns     []int // bounds in the vector
	parts       []int // bounds in this rank's column
	mine        []float32
	sum         []byte
}

// codedAcrossHosts carries such a call out.
func (c *Comm) codedAcrossHosts(p *pending) error {
	x := &crossing{Comm: c, p: p}
	n := len(c.hosts[0])
	for s, host := range c.hosts {
		n = min(n, len(host))
		if at := slices.Index(host, c.rank); at >= 0 {
			x.site, x.place = s, at
		}
	}
	x.columns = plan.Cut(p.call.In.Len, n)
	x.parts = make([]int, len(c.hosts)+1)
	if x.works() {
		x.mine = make([]float32, x.columns[x.place+1]-x.columns[x.place])
		x.parts = plan.Cut(len(x.mine), len(c.hosts))
	}
	for _, step := range []func() *pass{x.gather, x.exchange, x.results, x.spread} {
		w := step()
		p.sent, p.received = p.sent+w.inBytes, p.received+w.outBytes
		if err := c.through(p, w); err != nil {
			return err
		}
	}
	p.end(nil)
	return nil
}

// works reports whether this rank has a column.
func (x *crossing) works() bool { return x.place < len(x.columns)-1 }

// none is counts of nothing.
func (x *crossing) none() counts {
	return counts{make([]uint64, len(x.ranks)), make([]uint64, len(x.ranks))}
}

func (k counts) set(rank, n, at int) { k.n[rank], k.at[rank] = uint64(n), uint64(at) }

func (x *crossing) gather() *pass {
	local, send, receive := x.hosts[x.site], x.none(), x.none()
	for j := range len(x.columns) - 1 {
		send.set(local[j], x.columns[j+1]-x.columns[j], x.columns[j])
	}
	if x.works() {
		for i, r := range local {
			receive.set(r, len(x.mine), i*len(x.mine))
		}
	}
	w := x.unequal(device.F32, send, receive)
	x.send(w, x.p.call.In)
	if !x.works() {
		return w
	}
	w.outBytes = len(local) * len(x.mine) * device.F32.Size()
	w.take = func(host []byte) error {
		all := device.FromBytes(device.F32, host)
		parts := make([]device.Buf, len(local))
		for i := range parts {
			parts[i] = all.Slice(i*len(x.mine), (i+1)*len(x.mine))
		}
		collective.FoldParts(x.config.Reducer, collective.Sum, device.FromF32(x.mine), parts)
		return nil
	}
	return w
}

// part is one host's part of this rank's column, and where it is in the vector.
func (x *crossing) part(site int) (values []float32, at int) {
	return x.mine[x.parts[site]:x.parts[site+1]], x.columns[x.place] + x.parts[site]
}

// others calls visit for the column's ranks on other hosts, with the bytes of
// their part and where those begin, one after another; it returns them all.
func (x *crossing) others(visit func(site, rank, size, at int)) (bytes int) {
	if !x.works() {
		return 0
	}
	for s, host := range x.hosts {
		if s == x.site {
			continue
		}
		values, _ := x.part(s)
		size := x.p.call.Codec.EncodedLen(len(values))
		visit(s, host[x.place], size, bytes)
		bytes += size
	}
	return bytes
}

func (x *crossing) exchange() *pass {
	codec, send, receive := x.p.call.Codec, x.none(), x.none()
	peers := 0 // whose parts come one after another
	if x.works() {
		own, _ := x.part(x.site)
		x.sum = make([]byte, codec.EncodedLen(len(own)))
	}
	sent := x.others(func(_, rank, size, at int) {
		send.set(rank, size, at)
		receive.set(rank, len(x.sum), peers*len(x.sum))
		peers++
	})
	w := x.unequal(device.U8, send, receive)
	w.inBytes, w.outBytes = sent, peers*len(x.sum)
	w.fill = func(host []byte) {
		x.others(func(site, _, size, at int) {
			if values, from := x.part(site); len(values) > 0 {
				codec.Encode(host[at:at+size], values, from)
			}
		})
	}
	w.take = func(host []byte) error {
		own, at := []float32(nil), 0
		if x.works() {
			own, at = x.part(x.site)
		}
		if len(own) == 0 {
			return nil
		}
		codec.Begin(own, at)
		for i := range peers {
			codec.DecodeAdd(own, host[i*len(x.sum):][:len(x.sum)])
		}
		if x.p.call.Op == collective.Mean {
			collective.Divide(device.FromF32(own), len(x.ranks))
		}
		codec.EncodeSum(x.sum, own, at)
		codec.Decode(own, x.sum)
		return nil
	}
	return w
}

func (x *crossing) results() *pass {
	send, receive := x.none(), x.none()
	received := x.others(func(_, rank, size, at int) {
		send.set(rank, len(x.sum), 0)
		receive.set(rank, size, at)
	})
	w := x.unequal(device.U8, send, receive)
	w.inBytes, w.outBytes = len(x.sum), received
	w.fill = func(host []byte) { copy(host, x.sum) }
	w.take = func(host []byte) error {
		x.others(func(site, _, size, at int) {
			if values, _ := x.part(site); len(values) > 0 {
				x.p.call.Codec.Decode(values, host[at:at+size])
			}
		})
		return nil
	}
	return w
}

func (x *crossing) spread() *pass {
	local, send, receive := x.hosts[x.site], x.none(), x.none()
	for j := range len(x.columns) - 1 {
		receive.set(local[j], x.columns[j+1]-x.columns[j], x.columns[j])
	}
	if x.works() {
		for _, r := range local {
			send.set(r, len(x.mine), 0)
		}
	}
	w := x.unequal(device.F32, send, receive)
	w.last = true
	w.inBytes = len(x.mine) * device.F32.Size()
	w.fill = func(host []byte) { copy(host, device.FromF32(x.mine).Bytes()) }
	x.receive(w, output(&x.p.call), nil)
	return w
}
