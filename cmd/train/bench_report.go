package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/gradfusion/gradfusion/bench"
)

// benchReport is what rank 0 shows of a benchmark; that of other ranks is mute.
type benchReport struct {
	*benchmark
	mute    bool
	table   *bench.Table
	results []bench.Result
	wrong   int
}

func newBenchReport(b *benchmark, rank int, limits bool) *benchReport {
	return &benchReport{benchmark: b, mute: rank != 0, table: bench.NewTable(b.stdout, limits)}
}

// add shows a result when it comes.
func (r *benchReport) add(result bench.Result) error {
	if r.mute {
		return nil
	}
	r.results = append(r.results, result)
	if !result.Correct {
		r.wrong++
	}
	if r.json {
		return result.WriteJSON(r.stdout)
	}
	return r.table.Add(result)
}

// close shows what needs all results. Wrong ones are an error.
func (r *benchReport) close() error {
	if r.mute {
		return nil
	}
	if !r.json {
		if err := r.table.Close(); err != nil {
			return err
		}
	}
	if r.plot == "-" || r.plot == "" && !r.json && isTerminal(os.Stdout) {
		if err := bench.WriteTerminal(r.stdout, r.results); err != nil {
			return err
		}
	} else if r.plot != "" {
		if err := r.draw(); err != nil {
			return err
		}
	}
	if r.wrong > 0 {
		return fmt.Errorf("%d of %d measurements had wrong results: a reduction or a transport is at fault, and so are the figures above", r.wrong, len(r.results))
	}
	return nil
}

// draw writes the picture; a file that cannot be written is the user's mistake.
func (r *benchReport) draw() error {
	var picture strings.Builder
	if err := bench.WriteSVG(&picture, r.results); err != nil {
		return err
	}
	if err := os.WriteFile(r.plot, []byte(picture.String()), 0o644); err != nil {
		return usage("-plot: the picture cannot be written: %v", err)
	}
	return nil
}
