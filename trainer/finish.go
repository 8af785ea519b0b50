package trainer

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/observe/metrics"
	"github.com/gradfusion/gradfusion/observe/trace"
)

// finish waits for the last checkpoint, hashes the result, and writes the trace.
func (s *session) finish(ctx context.Context) (*metrics.Summary, error) {
	if err := s.saver.wait(s); err != nil {
		return nil, err
	}
	if err := s.fusion.AverageState(ctx); err != nil {
		return nil, err
	}
	digests, err := s.keptDigests(ctx)
	if err != nil {
		return nil, err
	}
	params, state, err := s.hashes(ctx, digests)
	if err != nil {
		return nil, err
	}
	out, err := s.figures.summary(ctx, s)
	if err != nil {
		return nil, err
	}
	out.ParamsSHA256, out.StateSHA256 = params, state
	if err := s.takeHashes(ctx, out); err != nil {
		return nil, err
	}
	if s.figures.trace {
		return out, s.writeTrace(ctx)
	}
	return out, nil
}

// writeTrace gathers the spans of all ranks on rank 0, which writes trace.json.
func (s *session) writeTrace(ctx context.Context) error {
	s.figures.begin() // what is still in the recorder
	own := trace.Encode(nil, trace.RankSpans{Rank: s.comm.Rank(), Lost: s.figures.lost, Spans: s.figures.spans})
	all, err := collective.GatherBytes(ctx, s.comm, own, "traces")
	if err != nil || s.comm.Rank() != 0 || s.job.RunDir == "" {
		return err
	}
	var ranks []trace.RankSpans
	for r, b := range all {
		spans, err := trace.Decode(b)
		if err != nil {
			return fmt.Errorf("spans of rank %d: %w", r, err)
		}
		ranks = append(ranks, spans)
	}
	var text bytes.Buffer
	if err := trace.Write(&text, ranks); err != nil {
		return err
	}
	if err := metrics.Replace(filepath.Join(s.job.RunDir, "trace.json"), text.Bytes()); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	return nil
}
