package parallel

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

// structure lists what the ranks of a stage have to agree on, a line each, in the
// model's order.
func (g *GradFusion) structure(s *stage) []string {
	var out []string
	for _, p := range s.params {
		line := fmt.Sprintf("parameter %s of shape %v and type %v", p.Name, p.Shape, p.Value.Type)
		if p.Sparse {
			line += ", with a sparse gradient"
		}
		if p.Frozen {
			line += ", frozen"
		}
		out = append(out, line)
	}
	for _, t := range States(s.states) {
		out = append(out, fmt.Sprintf("buffer %s of shape %v and type %v", t.Name, t.Shape, t.Buf.Type))
	}
	out = append(out, "no more parameters and buffers")
	c := g.cfg
	for _, row := range []struct {
		name  string
		value any
	}{
		{"the kernels", c.Device.Name()}, {"Deterministic", c.Deterministic}, {"Shard", c.Shard}, {"LocalSGD", c.LocalSGD},
		{"bytes of a bucket", c.thresholdBytes()}, {"bytes of the first bucket", c.firstBytes()}, {"Wire", fmt.Sprintf("%+v", c.Wire)},
		{"Targets", c.Targets}, {"ClipNorm", c.ClipNorm}, {"CheckEvery", c.CheckEvery}, {"FindUnused", c.FindUnused},
		{"Masters", c.Masters}, {"SyncBatchNorm", c.SyncBatchNorm != nil}, {"Scaler", c.Scaler != nil}, {"Hook", c.Hook != nil},
	} {
		out = append(out, fmt.Sprintf("%s = %v", row.name, row.value))
	}
	return out
}

// checkMasters refuses parameters that cannot be trained, when all ranks have been
// found to have the same.
func checkMasters(s *stage) error {
	for _, p := range s.params {
		switch {
		case p.Value.Type != device.F32:
			return fmt.Errorf("parallel: %s is of type %v, but masters are f32: FusionConfig.Masters and nn.Pass.Precision are for 16 bits", p.Name, p.Value.Type)
		case p.Value.Len != p.Len():
			return fmt.Errorf("parallel: %s has no memory of its %d elements: call nn.Materialize first", p.Name, p.Len())
		}
	}
	return nil
}

// compareStructure returns the same error on all ranks of a stage when they do not
// agree: it names the first line that differs, the lowest rank where it does, and
// what that rank and rank 0 have.
func compareStructure(ctx context.Context, comm collective.Comm, lines []string) error {
	text := strings.Join(lines, "\n")
	digest := sha256.Sum256([]byte(text))
	if r, err := firstDifference(ctx, comm, digest[:]); err != nil || r < 0 {
		return err
	}
	all, err := collective.GatherBytes(ctx, comm, []byte(text), "lists of parameters")
	if err != nil {
		return err
	}
	lists := make([][]string, len(all))
	for r := range all {
		lists[r] = strings.Split(string(all[r]), "\n")
	}
	at, rank := firstLine(lists)
	return fmt.Errorf("%w: rank 0 has %s where rank %d has %s: start all ranks with one model and one configuration, on like machines",
		ErrDiffer, line(lists[0], at), rank, line(lists[rank], at))
}

// firstLine finds the first line that a list has otherwise than the first list,
// and the lowest such list.
func firstLine(lists [][]string) (at, list int) {
	for ; ; at++ {
		for r := range lists {
			if line(lists[r], at) != line(lists[0], at) {
				return at, r
			}
		}
	}
}

func line(list []string, at int) string {
	if at >= len(list) {
		return "nothing"
	}
	return list[at]
}
