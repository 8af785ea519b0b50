package trainer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/observe/metrics"
	"github.com/gradfusion/gradfusion/parallel"
)

func dims(shape []int) string {
	words := make([]string, len(shape))
	for i, d := range shape {
		words[i] = strconv.Itoa(d)
	}
	return strings.Join(words, "x")
}

// mostElements bounds a tensor that a stage announces.
const mostElements = 1 << 40

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
