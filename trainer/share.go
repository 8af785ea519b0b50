package trainer

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gradfusion/gradfusion/checkpoint"
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/parallel"
)

// share lets every rank of a cut model read what it holds: from the file where all
// find the one that rank 0 reads in their own checkpoint.dir, else from rank 0,
// which sends one tensor after the other.
func (s *session) share(ctx context.Context, r *resumption) error {
	text, err := s.fromFirst(ctx, func() ([]byte, error) {
		return []byte(filepath.Base(r.path) + "\n" + r.file.Checksum), nil
	}, "name of the checkpoint")
	if err != nil {
		return err
	}
	name, checksum, _ := strings.Cut(string(text), "\n")
	if s.comm.Rank() > 0 {
		r.path = filepath.Join(s.cfg.Checkpoint.Dir, name)
		r.file = s.same(r.path, checksum)
	}
	missing := []int32{0}
	if r.file == nil {
		missing[0] = 1
	}
	call := collective.Call{Kind: plan.AllReduce, Op: collective.Max, In: device.FromI32(missing), Label: "who lacks the checkpoint"}
	if err := s.comm.Start(ctx, call).Wait(ctx); err != nil || missing[0] == 0 {
		return err
	}
	return s.send(ctx, r)
}

// same opens the file that rank 0 reads; nil: it is not here. On another host than
// rank 0's it may be a copy, which somebody else has made and nobody checked.
func (s *session) same(path, checksum string) *checkpoint.Reader {
	file, err := checkpoint.Open(path)
	if err != nil {
		return nil
	}
	if checksum == "" || file.Checksum != checksum || !s.besideFirst() && checkpoint.Verify(path) != nil {
		file.Close() // nothing was written
		return nil
	}
	return file
}

// besideFirst reports whether this rank is on rank 0's host.
func (s *session) besideFirst() bool {
	return slices.ContainsFunc(s.comm.Hosts(), func(host []int) bool {
		return slices.Contains(host, 0) && slices.Contains(host, s.comm.Rank())
	})
}

// send gives ranks without the file what they need of it.
func (s *session) send(ctx context.Context, r *resumption) error {
	list, err := s.fromFirst(ctx, func() ([]byte, error) {
		var own strings.Builder
		for _, t := range r.file.Tensors {
			n, _ := r.file.Size(t.Name)
			fmt.Fprintln(&own, n, t.Name)
		}
		return []byte(own.String()), nil
	}, "list of the checkpoint's tensors")
	if err != nil {
		return err
	}
	r.tensors = map[string][]byte{}
	needs := s.needed()
	var room []byte
	for line := range strings.Lines(string(list)) {
		length, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		n, err := strconv.Atoi(length)
		if err != nil || n < 0 {
			return fmt.Errorf("a tensor of %q bytes", length)
		}
		if n == 0 {
			r.tensors[name] = nil
			continue
		}
		if len(room) < n {
			room = make([]byte, n)
		}
		if s.comm.Rank() == 0 {
			if err := r.file.Read(name, room[:n]); err != nil {
				return err
			}
		}
		if err := collective.Broadcast(ctx, s.comm, 0, device.FromU8(room[:n])); err != nil {
			return fmt.Errorf("taking %s from rank 0: %w", name, err)
		}
		if r.file == nil && needs(name) {
			r.tensors[name] = append([]byte(nil), room[:n]...)
		}
	}
	return nil
}

// needed tells which tensors of a checkpoint this rank has.
func (s *session) needed() func(name string) bool {
	own := map[string]bool{}
	for _, p := range nn.Params(s.blocks) {
		own[prefixParam+p.Name] = true
		own[prefixOptimizer+p.Name] = true
	}
	for _, b := range parallel.States(nn.States(s.blocks)) {
		own[prefixBuffer+b.Name] = true
	}
	return func(name string) bool {
		return own[name] || strings.HasPrefix(name, prefixOptimizer) && own[paramOf(name)]
	}
}
