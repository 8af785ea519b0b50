package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// Trained is what one run of a training showed.
type Trained struct {
	Batch         int     // global: samples per step
	Steps         int     // measured ones
	SamplesPerSec float64 // over all ranks
	StepMs        float64 // median
	ExposedMs     float64 // of communication, mean per step
	OverlapPct    *float64
}

// Scaled is how a training scales to a number of ranks. Each rank has the same
// batch and the same threads at every number (weak scaling), so the ideal
// speed-up is the ratio of the numbers of ranks.
type Scaled struct {
	Ranks         int      `json:"ranks"`
	Threads       int      `json:"threads"` // of each rank
	Batch         int      `json:"batch"`   // global
	Steps         int      `json:"steps"`   // measured in each run
	Runs          int      `json:"runs"`
	SamplesPerSec float64  `json:"samples_per_sec"` // medians of the runs, this and the next three
	StepMs        float64  `json:"step_ms_p50"`
	ExposedMs     float64  `json:"comm_exposed_ms"`
	OverlapPct    *float64 `json:"overlap_pct"` // null where nothing was sent
	Speedup       float64  `json:"speedup"`
	Ideal         float64  `json:"ideal_speedup"`
	Efficiency    float64  `json:"scaling_efficiency"` // Speedup / Ideal
}

// Scaling says what Scale runs.
type Scaling struct {
	Ranks   []int // the first is the base of speed-ups
	Runs    int   // of each; 0: 3
	Threads int   // of each rank, for the results
	// Train runs the training once. run counts from 1.
	Train func(ctx context.Context, ranks, run int) (Trained, error)
}

// Scale runs a training at several numbers of ranks in turn, all of them once
// before any of them again, so that a machine that drifts does not favour one.
func Scale(ctx context.Context, s Scaling) ([]Scaled, error) {
	if s.Runs == 0 {
		s.Runs = 3
	}
	runs := make([][]Trained, len(s.Ranks))
	for run := range s.Runs {
		for i, n := range s.Ranks {
			t, err := s.Train(ctx, n, run+1)
			if err != nil {
				return nil, err
			}
			runs[i] = append(runs[i], t)
		}
	}
	var out []Scaled
	for i, n := range s.Ranks {
		first := runs[i][0]
		r := Scaled{
			Ranks: n, Threads: s.Threads, Batch: first.Batch, Steps: first.Steps, Runs: s.Runs,
			SamplesPerSec: middle(runs[i], func(t Trained) float64 { return t.SamplesPerSec }),
			StepMs:        middle(runs[i], func(t Trained) float64 { return t.StepMs }),
			ExposedMs:     middle(runs[i], func(t Trained) float64 { return t.ExposedMs }),
			Ideal:         float64(n) / float64(s.Ranks[0]),
		}
		if first.OverlapPct != nil {
			overlap := middle(runs[i], func(t Trained) float64 {
				if t.OverlapPct == nil {
					return 0
				}
				return *t.OverlapPct
			})
			r.OverlapPct = &overlap
		}
		out = append(out, r)
	}
	for i := range out {
		out[i].Speedup = out[i].SamplesPerSec / out[0].SamplesPerSec
		out[i].Efficiency = out[i].Speedup / out[i].Ideal
	}
	return out, nil
}

// middle is the median of a figure.
func middle(runs []Trained, figure func(Trained) float64) float64 {
	var all []float64
	for _, t := range runs {
		all = append(all, figure(t))
	}
	slices.Sort(all)
	n := len(all)
	return (all[(n-1)/2] + all[n/2]) / 2
}

// WriteScalingJSON writes a line for each number of ranks.
func WriteScalingJSON(w io.Writer, all []Scaled) error {
	for _, s := range all {
		for _, v := range []*float64{&s.SamplesPerSec, &s.StepMs, &s.ExposedMs, &s.Speedup, &s.Efficiency} {
			*v = rounded(*v)
		}
		if s.OverlapPct != nil {
			overlap := rounded(*s.OverlapPct)
			s.OverlapPct = &overlap
		}
		if err := json.NewEncoder(w).Encode(s); err != nil {
			return err
		}
	}
	return nil
}

// WriteScaling writes a table. cores are this host's.
func WriteScaling(w io.Writer, model string, all []Scaled, cores int) error {
	fmt.Fprintf(w, "%s, weak scaling: %d samples and %s a rank, %d steps, medians of %s\n", model,
		all[0].Batch/all[0].Ranks, count(all[0].Threads, "thread"), all[0].Steps, count(all[0].Runs, "run"))
	fmt.Fprintf(w, "%6s %7s %12s %10s %10s %8s %9s %7s %11s\n", "ranks", "batch", "samples/s", "step", "exposed", "overlap", "speed-up", "ideal", "efficiency")
	most := 0
	for _, s := range all {
		overlap := "-"
		if s.OverlapPct != nil {
			overlap = fmt.Sprintf("%.0f %%", *s.OverlapPct)
		}
		fmt.Fprintf(w, "%6d %7d %12s %10s %10s %8s %9.2f %7.2f %11.3f\n", s.Ranks, s.Batch, digits(s.SamplesPerSec),
			formatTime(1e3*s.StepMs), formatTime(1e3*s.ExposedMs), overlap, s.Speedup, s.Ideal, s.Efficiency)
		most = max(most, s.Ranks)
	}
	var err error
	if most*all[0].Threads > cores {
		_, err = fmt.Fprintf(w, "%s of %s each share %s: the ideal is out of reach there\n", count(most, "rank"), count(all[0].Threads, "thread"), count(cores, "core"))
	}
	return err
}
