package metrics

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The keys of the documented contract, with a null where one is allowed.
const summaryKeys = `{"model":"resnet20","params":1,"world_size":2,"data_parallel":2,"pipeline":1,"tensor":1,"steps":3,"epochs":1,
"global_batch":64,"micro_batch":32,"bucket_mb":16,"loss_first":2.5,"loss_last":null,"eval_accuracy":null,"eval_loss":null,
"samples_per_sec":0,"tokens_per_sec":null,"scaling_efficiency":null,"step_ms_p50":100,"step_ms_p95":100,"step_ms_predicted":null,"forward_ms":20,"backward_ms":35,
"optimizer_ms":15,"comm_ms":45,"comm_exposed_ms":15,"bubble_ms":8,"wait_ms":5,"data_ms":10,"overlap_pct":70,"bytes_sent":110,
"bytes_received":55,"bytes_saved":6,"peak_rss_mb":0,"optimizer_mb":0,"activations_mb":0,"time_to_first_step_s":0,"grad_sha256_first":null,"params_sha256":"","state_sha256":""}`

func scripted() Summary {
	var s StepTimes
	for _, v := range step(0) {
		s.Add(v)
	}
	s.EndStep()
	first, last := 2.5, math.NaN()
	out := Summary{Model: "resnet20", Params: 1, WorldSize: 2, DataParallel: 2, Pipeline: 1, Tensor: 1, Steps: 3, Epochs: 1, GlobalBatch: 64,
		MicroBatch: 32, BucketMB: 16, LossFirst: &first, LossLast: &last, SamplesPerSec: math.Inf(1)}
	s.Summarize(&out)
	return out
}

func TestSummaryFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "summary.json")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	require.NoError(t, scripted().WriteFile(path))
	require.JSONEq(t, summaryKeys, read(t, path))

	var back Summary
	require.NoError(t, json.Unmarshal([]byte(read(t, path)), &back))
	require.Nil(t, back.LossLast)
	require.Equal(t, 2.5, *back.LossFirst)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file stays")
}

func TestSummaryFileErrors(t *testing.T) {
	dir := t.TempDir()
	err := scripted().WriteFile(filepath.Join(dir, "no", "summary.json"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "summary ")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "taken"), 0o700))
	require.Error(t, scripted().WriteFile(filepath.Join(dir, "taken")))
	require.NoError(t, scripted().WriteFile(os.DevNull), "written to, not replaced")
	info, err := os.Stat(os.DevNull)
	require.NoError(t, err)
	require.False(t, info.Mode().IsRegular())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file stays")
}
