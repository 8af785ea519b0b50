package trainer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/observe/metrics"
	"github.com/gradfusion/gradfusion/parallel"
)

// fromStages gives rank 0 the tensors of all stages, those of the others in new
// memory; other ranks keep what they have. It is collective over the first
// column. Of tied parameters the first copy counts.
func (s *session) fromStages(ctx context.Context, own []parallel.Named) ([]parallel.Named, error) {
	if !s.isCut() || s.mesh.At.Data > 0 || s.mesh.At.Tensor > 0 {
		return own, nil
	}
	var mine []parallel.Named
	var list strings.Builder
	for _, t := range s.firstCopies(own) {
		mine = append(mine, t)
		fmt.Fprintf(&list, "%d %s %s\n", t.Buf.Type, dims(t.Shape), t.Name)
	}
	column := s.mesh.Column
	lists, err := collective.GatherBytes(ctx, column, []byte(list.String()), "names of the stages' tensors")
	if err != nil {
		return nil, fmt.Errorf("asking the stages for their tensors: %w", err)
	}
	var works []*collective.Work
	if column.Rank() > 0 {
		for _, t := range mine {
			if t.Buf.Len > 0 {
				works = append(works, column.Exchange(ctx, []collective.PointToPoint{{Peer: 0, Buf: t.Buf}}))
			}
		}
		return own, waitFor(ctx, works)
	}
	out := mine
	for peer := 1; peer < column.Size(); peer++ {
		for line := range strings.Lines(string(lists[peer])) {
			t, err := announced(strings.TrimSuffix(line, "\n"))
			if err != nil {
				return nil, fmt.Errorf("stage rank %d announces %q: %w", peer, line, err)
			}
			if out = append(out, t); t.Buf.Len > 0 {
				works = append(works, column.Exchange(ctx, []collective.PointToPoint{{Peer: peer, Recv: true, Buf: t.Buf}}))
			}
		}
	}
	return out, waitFor(ctx, works)
}

func waitFor(ctx context.Context, works []*collective.Work) error {
	for _, w := range works {
		if err := w.Wait(ctx); err != nil {
			return fmt.Errorf("gathering the tensors of the stages: %w", err)
		}
	}
	return nil
}

// firstCopies leaves out what an earlier stage has: tied parameters and what
// belongs to them.
func (s *session) firstCopies(tensors []parallel.Named) (out []parallel.Named) {
	seen := map[string]bool{}
	for _, t := range tensors {
		if seen[t.Name] || s.later[t.Name] || s.later[paramOf(t.Name)] {
			continue
		}
		seen[t.Name] = true
		out = append(out, t)
	}
	return out
}

func dims(shape []int) string {
	words := make([]string, len(shape))
	for i, d := range shape {
		words[i] = strconv.Itoa(d)
	}
	return strings.Join(words, "x")
}

// mostElements bounds a tensor that a stage announces.
const mostElements = 1 << 40

// announced makes room for a tensor that a stage is about to send.
func announced(line string) (t parallel.Named, err error) {
	t, n, err := parseAnnouncement(line)
	if err != nil {
		return t, err
	}
	t.Buf, err = device.HostAlloc(t.Buf.Type, n)
	return t, err
}

// parseAnnouncement reads type, shape and name of a tensor that has n elements.
func parseAnnouncement(line string) (t parallel.Named, n int, err error) {
	words := strings.SplitN(line, " ", 3)
	if len(words) < 3 {
		return t, 0, errors.New("type, shape and name are missing")
	}
	kind, err := strconv.Atoi(words[0])
	if err != nil || kind < 0 || kind > int(device.U8) {
		return t, 0, fmt.Errorf("%q is no type", words[0])
	}
	t.Name, t.Buf.Type, n = words[2], device.Type(kind), 1
	for word := range strings.SplitSeq(words[1], "x") {
		if word == "" {
			continue // a scalar
		}
		d, err := strconv.Atoi(word)
		if err != nil || d < 0 || d > mostElements/max(n, 1) {
			return t, 0, fmt.Errorf("%q is no shape", words[1])
		}
		t.Shape = append(t.Shape, d)
		n *= d
	}
	return t, n, nil
}

// takeHashes gives all ranks rank 0's hashes if the model is cut in stages, which
// rank 0 alone has seen all of.
func (s *session) takeHashes(ctx context.Context, out *metrics.Summary) error {
	if !s.isCut() {
		return nil
	}
	text, err := s.fromFirst(ctx, func() ([]byte, error) {
		first := ""
		if out.GradSHA256First != nil {
			first = *out.GradSHA256First
		}
		return []byte(out.ParamsSHA256 + " " + out.StateSHA256 + " " + first), nil
	}, "hashes of the result")
	if err != nil {
		return err
	}
	words := strings.Split(string(text), " ")
	out.ParamsSHA256, out.StateSHA256 = words[0], words[1]
	if out.GradSHA256First = nil; words[2] != "" {
		out.GradSHA256First = &words[2]
	}
	return nil
}

// stageActivations returns what passes of this rank's stages keep of a sample: the
// smallest stage in one micro-batch, and all in those that they hold at once.
func (s *session) stageActivations() (least, held float64) {
	for i, stage := range s.stages {
		bytes := float64(s.pipeline.Cost(stage.Index).Activations) / float64(s.micro)
		if i == 0 || bytes < least {
			least = bytes
		}
		held += bytes * float64(s.pipeline.Loads[stage.Index].Held)
	}
	return least, held
}
