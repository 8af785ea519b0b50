package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// Result is one measurement. Bytes are those of the full vector, a GB is 1e9
// bytes.
type Result struct {
	Op         string  `json:"op"`
	DType      string  `json:"dtype"`
	Bytes      int     `json:"bytes"`
	Ranks      int     `json:"ranks"`
	Transport  string  `json:"transport"`
	Algorithm  string  `json:"algorithm"`
	Registered bool    `json:"registered"`
	Iterations int     `json:"iters"`
	P50        float64 `json:"lat_us_p50"` // of the iterations' times, each the slowest rank's
	Best       float64 `json:"lat_us_best"`
	AlgBW      float64 `json:"algbw_gbps"` // bytes / median time
	BusBW      float64 `json:"busbw_gbps"` // AlgBW x Operation.BusFactor
	Correct    bool    `json:"correct"`    // on all ranks, before, during and after

	// Limit is how long it takes all ranks at once, at best, to read and write
	// Bytes of their own memory each: what a direct all-reduce has to do at
	// least. It is to be compared with Best. 0: not measured.
	Limit float64 `json:"limit_us,omitempty"`
	// Waiting is by how many per cent a computation takes longer beside a call
	// that waits for a peer. nil: not measured.
	Waiting *float64 `json:"waiting_pct,omitempty"`
}

// rate fills in the bandwidths.
func (r *Result) rate(o Operation) {
	if r.P50 > 0 && o.sized() {
		r.AlgBW = float64(r.Bytes) / r.P50 / 1e3
		r.BusBW = r.AlgBW * o.BusFactor(r.Ranks)
	}
}

// WriteJSON writes r as one line.
func (r Result) WriteJSON(w io.Writer) error {
	r.P50, r.Best, r.Limit = rounded(r.P50), rounded(r.Best), rounded(r.Limit)
	r.AlgBW, r.BusBW = rounded(r.AlgBW), rounded(r.BusBW)
	return json.NewEncoder(w).Encode(r)
}

// rounded keeps what a clock of nanoseconds can tell.
func rounded(v float64) float64 {
	var out float64
	if _, err := fmt.Sscan(fmt.Sprintf("%.6g", v), &out); err != nil {
		return v
	}
	return out
}

// median of times in nanoseconds, in microseconds; of an even number the mean
// of the two in the middle. It sorts them.
func median(times []int64) float64 {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	middle := len(times) / 2
	if len(times)%2 == 1 {
		return float64(times[middle]) / 1e3
	}
	return float64(times[middle-1]+times[middle]) / 2e3
}
