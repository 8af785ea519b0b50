package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective/ranktable"
)

const pastedTable = `{"status": "completed", "server_count": 2, "server_list": [
 {"server_id": "10.0.0.1", "host_nic_ip": "reserve", "device": [{"device_id": 0, "device_ip": "192.168.1.8"}, {"device_id": 1, "device_ip": "192.168.1.9"}]},
 {"server_id": "10.0.0.2", "host_nic_ip": "reserve", "device": [{"device_id": 0, "device_ip": "192.168.2.8"}, {"device_id": 1, "device_ip": "192.168.2.9"}]}]}`

func diag(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	c := &command{stdout: &out, stderr: &errs}
	code = c.run(append([]string{"diag"}, args...))
	return code, out.String(), strings.Join(strings.Fields(errs.String()), " ")
}

func TestDiagRepairsATable(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.json"), filepath.Join(dir, "out.json")
	require.NoError(t, os.WriteFile(in, []byte(pastedTable), 0o644))

	code, stdout, stderr := diag(t, "-rank-table", in)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stdout, "line 1: server_count: is the bare number 2")
	require.Contains(t, stdout, "repair: numbered in the order of the table")
	require.Contains(t, stderr, "-fix OUT writes a table that is")

	code, stdout, stderr = diag(t, "-rank-table", in, "-fix", out)
	require.Equal(t, exitDone, code, stderr)
	require.Contains(t, stdout, "3      1       192.168.2.9      10.0.0.2\n")
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	_, err = ranktable.Load(text)
	require.NoError(t, err)

	code, _, stderr = diag(t, "-rank-table", in, "-fix", out)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "is there already, and is not overwritten")

	code, stdout, _ = diag(t, "-rank-table", out, "-json")
	require.Equal(t, exitDone, code)
	var d diagnosis
	require.NoError(t, json.Unmarshal([]byte(stdout), &d))
	require.True(t, d.Valid)
	require.Len(t, d.Ranks, 4)
}

func TestDiagLeavesWhatOnlyTheUserKnows(t *testing.T) {
	in := filepath.Join(t.TempDir(), "in.json")
	out := in + ".fixed"
	require.NoError(t, os.WriteFile(in, []byte(`{"status":"completed","version":"1.0","server_count":"2","server_list":[
	 {"server_id":"a","device":[{"device_id":"0","rank_id":"0"}]},{"server_id":"b","device":[{"device_id":"0","rank_id":"1"}]}]}`), 0o644))
	code, stdout, stderr := diag(t, "-rank-table", in, "-fix", out)
	require.Equal(t, exitUsage, code)
	require.Contains(t, strings.Join(strings.Fields(stdout), " "), "hccn_tool -i 0 -ip -g")
	require.Contains(t, stderr, "2 of its faults only you can mend")
	require.NoFileExists(t, out)
}
