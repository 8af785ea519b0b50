package metrics

import (
	"encoding/json"
	"fmt"
	"math"
)

// Summary is summary.json. Pointers are null where a figure does not apply or
// was not measured. Times are means per step after warm-up, in milliseconds
// unless the name says otherwise.
type Summary struct {
	Model        string  `json:"model"`
	Params       int64   `json:"params"`
	WorldSize    int     `json:"world_size"`
	DataParallel int     `json:"data_parallel"`
	Pipeline     int     `json:"pipeline"`
	Tensor       int     `json:"tensor"`
	Steps        int     `json:"steps"`
	Epochs       int     `json:"epochs"`
	GlobalBatch  int     `json:"global_batch"`
	MicroBatch   int     `json:"micro_batch"`
	BucketMB     float64 `json:"bucket_mb"` // of 2^20 bytes, of gradients

	LossFirst    *float64 `json:"loss_first"`
	LossLast     *float64 `json:"loss_last"`
	EvalAccuracy *float64 `json:"eval_accuracy"`
	EvalLoss     *float64 `json:"eval_loss"`

	SamplesPerSec     float64  `json:"samples_per_sec"` // over all ranks
	TokensPerSec      *float64 `json:"tokens_per_sec"`  // where samples are texts
	ScalingEfficiency *float64 `json:"scaling_efficiency"`
	StepMsP50         float64  `json:"step_ms_p50"`
	StepMsP95         float64  `json:"step_ms_p95"`
	StepMsPredicted   *float64 `json:"step_ms_predicted"` // the schedule's simulation with what the actions of its stages took in this run, and the update; of pipelines
	ForwardMs         float64  `json:"forward_ms"`
	BackwardMs        float64  `json:"backward_ms"`
	OptimizerMs       float64  `json:"optimizer_ms"`
	CommMs            float64  `json:"comm_ms"`
	CommExposedMs     float64  `json:"comm_exposed_ms"`
	BubbleMs          float64  `json:"bubble_ms"` // waiting for what another stage has not computed yet
	WaitMs            float64  `json:"wait_ms"`
	DataMs            float64  `json:"data_ms"`
	OverlapPct        *float64 `json:"overlap_pct"`
	BytesSent         int64    `json:"bytes_sent"` // over all steps
	BytesReceived     int64    `json:"bytes_received"`
	BytesSaved        int64    `json:"bytes_saved"`    // of bytes_sent, by collective.pack
	PeakRSSMB         float64  `json:"peak_rss_mb"`    // the largest rank's, pages that several map in equal parts
	OptimizerMB       float64  `json:"optimizer_mb"`   // state of the optimizer, the largest rank's
	ActivationsMB     float64  `json:"activations_mb"` // most that passes held at once, gradients of activations included
	TimeToFirstStepS  float64  `json:"time_to_first_step_s"`

	GradSHA256First *string `json:"grad_sha256_first"`
	ParamsSHA256    string  `json:"params_sha256"`
	StateSHA256     string  `json:"state_sha256"`
}

// Summarize fills in what s knows: the times, the percentiles and the bytes.
func (s *StepTimes) Summarize(out *Summary) {
	t := s.Means()
	out.StepMsP50, out.StepMsP95 = s.StepPercentile(50), s.StepPercentile(95)
	out.ForwardMs, out.BackwardMs, out.OptimizerMs = t.Forward, t.Backward, t.Optimizer
	out.CommMs, out.CommExposedMs, out.BubbleMs, out.WaitMs, out.DataMs = t.Comm, t.Exposed, t.Bubble, t.Wait, t.Data
	out.OverlapPct = s.Overlap()
	out.BytesSent, out.BytesReceived = s.Bytes()
	out.BytesSaved = s.Saved()
}

// JSON returns the summary as indented JSON with a newline at its end. Values
// that JSON cannot write (a loss that is not a number) become null, or 0 where
// null is not possible.
func (s Summary) JSON() ([]byte, error) {
	for _, p := range []**float64{&s.LossFirst, &s.LossLast, &s.EvalAccuracy, &s.EvalLoss, &s.TokensPerSec, &s.ScalingEfficiency, &s.StepMsPredicted, &s.OverlapPct} {
		if *p != nil && !finite(**p) {
			*p = nil
		}
	}
	for _, p := range []*float64{&s.SamplesPerSec, &s.StepMsP50, &s.StepMsP95, &s.ForwardMs, &s.BackwardMs, &s.OptimizerMs,
		&s.CommMs, &s.CommExposedMs, &s.BubbleMs, &s.WaitMs, &s.DataMs, &s.PeakRSSMB, &s.OptimizerMB, &s.ActivationsMB, &s.TimeToFirstStepS} {
		if !finite(*p) {
			*p = 0
		}
	}
	b, err := json.MarshalIndent(s, "", "  ")
	return append(b, '\n'), err
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// WriteFile writes the summary to path so that a reader finds the old file or
// the whole new one: into a temporary file beside it, which then takes its
// name. A failure leaves nothing behind.
func (s Summary) WriteFile(path string) error {
	b, err := s.JSON()
	if err == nil {
		err = Replace(path, b)
	}
	if err != nil {
		return fmt.Errorf("summary %s: %w", path, err)
	}
	return nil
}
