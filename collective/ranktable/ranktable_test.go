package ranktable_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective/ranktable"
)

const good = `{"status":"completed","version":"1.0","server_count":"2",
 "server_list":[
  {"server_id":"node_0","host_ip":"172.16.0.100",
   "device":[{"device_id":"0","device_ip":"192.168.1.8","device_port":"16667","rank_id":"0"},
             {"device_id":"1","device_ip":"192.168.1.9","device_port":"16667","rank_id":"1"}]},
  {"server_id":"node_1","host_ip":"172.16.0.101",
   "device":[{"device_id":"0","device_ip":"192.168.2.8","device_port":"16667","rank_id":"2"},
             {"device_id":"1","device_ip":"192.168.2.9","device_port":"16667","rank_id":"3"}]}]}`

func TestGoodTable(t *testing.T) {
	table, err := ranktable.Load([]byte(good))
	require.NoError(t, err)
	require.Equal(t, "1.0", table.Version)
	require.Equal(t, [][]int{{0, 1}, {2, 3}}, table.Hosts())
	places := table.Places()
	require.Len(t, places, 4)
	require.Equal(t, ranktable.Place{Server: 1, Device: ranktable.Device{ID: 0, Rank: 2, IP: "192.168.2.8", Port: 16667}}, places[2])
	require.Empty(t, table.Judge())

	again, err := ranktable.Load(table.JSON())
	require.NoError(t, err)
	require.Equal(t, table, again)
}

// The table of many guides: bare numbers, no ranks, no version, host_nic_ip.
const pasted = `{
  "status": "completed",
  "server_count": 2,
  "server_list": [
    {"server_id": "10.0.0.1", "host_nic_ip": "reserve",
     "device": [{"device_id": 0, "device_ip": "192.168.1.8"}, {"device_id": 1, "device_ip": "192.168.1.9"}]},
    {"server_id": "10.0.0.2", "host_nic_ip": "10.0.0.2",
     "device": [{"device_id": 0, "device_ip": "192.168.2.8"}, {"device_id": 1, "device_ip": "192.168.2.9"}]}
  ]
}`

func TestPastedTableIsExplainedAndRepaired(t *testing.T) {
	table, faults, err := ranktable.Parse([]byte(pasted))
	require.NoError(t, err)
	var texts []string
	for _, f := range faults {
		require.NotEmpty(t, f.Repair, f.String())
		texts = append(texts, f.String())
	}
	all := strings.Join(texts, "\n")
	for _, want := range []string{
		"line 1: version: is missing",
		"line 3: server_count: is the bare number 2; every value is a string in quotes",
		"line 5: server_list[0].host_nic_ip: is no field that HCCL reads",
		"line 7: server_list[1].host_nic_ip: is no field that HCCL reads; the host's address is host_ip",
		"line 6: server_list[0].device[0].device_id: is the bare number 0",
		"line 8: server_list[1].device[1].rank_id: is missing",
	} {
		require.Contains(t, all, want)
	}
	require.Equal(t, [][]int{{0, 1}, {2, 3}}, table.Hosts())
	require.Equal(t, "10.0.0.2", table.Servers[1].HostIP)
	require.Empty(t, table.Servers[0].HostIP)
	_, err = ranktable.Load(table.JSON())
	require.NoError(t, err, "what is repaired is valid")
	_, err = ranktable.Load([]byte(pasted))
	require.ErrorContains(t, err, "rank_id: is missing")
}

func TestOldTemplate(t *testing.T) {
	table, faults, err := ranktable.Parse([]byte(`{"status":"completed","group_count":"1","group_list":[{"group_name":"worker","instance_count":"2","device_count":"2",
	 "instance_list":[{"pod_name":"a","server_id":"10.0.0.1","devices":[{"device_id":"0","device_ip":"192.168.1.8"}]},
	                  {"pod_name":"b","server_id":"10.0.0.2","devices":[{"device_id":"0","device_ip":"192.168.2.8"}]}]}]}`))
	require.NoError(t, err)
	require.Len(t, faults, 1)
	require.Contains(t, faults[0].String(), "group_list: is the older template")
	require.Equal(t, [][]int{{0}, {1}}, table.Hosts())
	_, err = ranktable.Load(table.JSON())
	require.NoError(t, err)
}

func TestSuperPods(t *testing.T) {
	text := `{"status":"completed","version":"1.2","server_count":"2","server_list":[
	 {"server_id":"a","device":[{"device_id":"0","device_ip":"192.168.1.8","super_device_id":"0","rank_id":"0","backup_device_ip":"192.168.1.9","backup_device_port":"16667"}]},
	 {"server_id":"b","device":[{"device_id":"0","device_ip":"192.168.2.8","super_device_id":"1","rank_id":"1"}]}],
	 "super_pod_list":[{"super_pod_id":"0","server_list":[{"server_id":"a"},{"server_id":"%s"}]}]}`
	table, err := ranktable.Load(fmt.Appendf(nil, text, "b"))
	require.NoError(t, err)
	require.Equal(t, []ranktable.SuperPod{{ID: "0", Servers: []string{"a", "b"}}}, table.SuperPods)
	again, err := ranktable.Load(table.JSON())
	require.NoError(t, err)
	require.Equal(t, table, again)
	_, err = ranktable.Load(fmt.Appendf(nil, text, "c"))
	require.EqualError(t, err, `line 4: super_pod_list[0].server_list[1].server_id: names "c", which is no server of server_list`)
}

// Each row changes the good table in one place.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		old, new string
		want     string
		fixed    bool
	}{
		{`"completed"`, `"initializing"`, "status: is initializing", true},
		{`"completed"`, `"done"`, `status: is "done"; it has to be completed`, true},
		{`"1.0"`, `"2.0"`, "version: is 2.0, the format of Ascend 950", false},
		{`"1.0"`, `"3"`, `version: is "3"`, true},
		{`"server_count":"2"`, `"server_count":"3"`, "server_count: is 3, but server_list has 2 servers", true},
		{`"server_count":"2"`, `"server_count":"x"`, `server_count: is "x"; it has to be a whole number`, false},
		{`"device":[{"device_id":"0","device_ip":"192.168.2.8"`, `"device":{"device_id":"0"},"device":[{"device_id":"0","device_ip":"192.168.2.8"`, "device: is an object; it has to be a list in brackets", false},
		{`"server_count":"2",`, ``, "server_count: is missing", true},
		{`"node_1"`, `"node_0"`, `server_list[1].server_id: "node_0" is that of server_list[0] too`, false},
		{`172.16.0.101`, `172.16.0.100`, "server_list[1].host_ip: 172.16.0.100 is that of server_list[0] too", false},
		{`172.16.0.101`, `host`, `line 6: server_list[1].host_ip: is "host", which is no IP address`, false},
		{`192.168.2.9`, `192.168.1.9`, "server_list[1].device[1].device_ip: 192.168.1.9 is that of server_list[0].device[1] too", false},
		{`,"device_ip":"192.168.2.9"`, ``, "server_list[1].device[1].device_ip: is missing, and several servers meet over the devices' own network", false},
		{`"rank_id":"3"`, `"rank_id":"4"`, "server_list[1].device[1].rank_id: is 4, but the table has 4 devices, so ranks are 0 to 3", false},
		{`"rank_id":"3"`, `"rank_id":"1"`, "server_list[1].device[1].rank_id: is 1, which server_list[0].device[1] has too", false},
		{`"rank_id":"3"`, `"rank_id":"x"`, `line 8: server_list[1].device[1].rank_id: is "x"`, false},
		{`"rank_id":"3"`, `"rank_id":3`, "line 8: server_list[1].device[1].rank_id: is the bare number 3", true},
		{`"rank_id":"3"`, `"rank_id":null`, "server_list[1].device[1].rank_id: is null; it has to be a string", false},
		{`"device_port":"16667","rank_id":"3"`, `"device_port":"70000","rank_id":"3"`, "device_port: is 70000; a port is 1 to 65535", true},
		{`{"device_id":"1","device_ip":"192.168.2.9"`, `{"device_id":"0","device_ip":"192.168.2.9"`, "server_list[1].device[1].device_id: 0 is that of device[0]", false},
		{`"server_id":"node_1",`, `"server_id":"node_1","server_id":"x",`, "server_list[1].server_id: is given twice", true},
		{`"host_ip":"172.16.0.101",`, `"hostip":"172.16.0.101",`, "server_list[1].hostip: is no field of a rank table here", true},
	} {
		t.Run(c.want, func(t *testing.T) {
			text := strings.Replace(good, c.old, c.new, 1)
			require.NotEqual(t, good, text)
			table, faults, err := ranktable.Parse([]byte(text))
			require.NoError(t, err)
			require.NotContains(t, fmt.Sprint(faults), "server_count: is 0")
			found := false
			for _, f := range faults {
				if strings.Contains(f.String(), c.want) {
					found = true
					require.Equal(t, c.fixed, f.Repair != "", f.String())
				}
			}
			require.True(t, found, "%v", faults)
			if c.fixed && len(faults) == 1 {
				_, err := ranktable.Load(table.JSON())
				require.NoError(t, err)
			}
		})
	}
}

func TestInterleavedRanksAreRenumbered(t *testing.T) {
	text := strings.NewReplacer(`"rank_id":"1"`, `"rank_id":"2"`, `"rank_id":"2"`, `"rank_id":"1"`).Replace(good)
	table, faults, err := ranktable.Parse([]byte(text))
	require.NoError(t, err)
	require.Len(t, faults, 1)
	require.Contains(t, faults[0].Text, "has the ranks 0, 2: those of one server have to follow each other")
	require.Equal(t, [][]int{{0, 1}, {2, 3}}, table.Hosts())
}

func TestJudge(t *testing.T) {
	table := &ranktable.Table{Version: "1.0", Servers: []ranktable.Server{
		{ID: "a", Devices: []ranktable.Device{{ID: 1, Rank: 0, IP: "10.1.0.1"}, {ID: 5, Rank: 1, IP: "10.1.0.2"}}},
		{ID: "b", Devices: []ranktable.Device{{ID: 0, Rank: 2, IP: "10.2.0.1"}}},
		{ID: "c", Devices: []ranktable.Device{{ID: 3, Rank: 3, IP: "10.1.0.3"}, {ID: 2, Rank: 4, IP: "10.1.0.4"}}},
	}}
	advice := table.Judge()
	require.Len(t, advice, 3)
	require.Contains(t, advice[0].Text, "the servers have 1 to 2 devices")
	require.Contains(t, advice[1].Text, "both groups 0-3 and 4-7")
	require.Equal(t, []int{0, 1, 4, 3, 2}, advice[2].Order)
	better := table.Renumbered(advice[2].Order)
	require.Equal(t, [][]int{{0, 1}, {2, 3}, {4}}, better.Hosts())
	for _, a := range better.Judge() {
		require.Nil(t, a.Order)
	}
}

func TestNoTable(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "line 1: no JSON: the file is empty",
		" \n":                          "line 1: no JSON: the file is empty",
		"[]":                           "line 1: no JSON: a rank table is an object in braces, this is a list",
		"{\n\"a\": }":                  "line 2: no JSON",
		"{\"status\":\"completed\"":    "no JSON: unexpected EOF",
		"{}\n{}":                       "text follows the table's last brace",
		strings.Repeat(`{"a":`, 10000): "no JSON: nested more than 16 deep",
	} {
		_, _, err := ranktable.Parse([]byte(text))
		require.ErrorContains(t, err, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(pasted))
	f.Add([]byte(`{"group_list":[{"instance_list":[{"devices":[{}]}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		table, faults, err := ranktable.Parse(text)
		if err != nil {
			return
		}
		require.True(t, json.Valid(table.JSON()))
		if len(faults) > 0 {
			return
		}
		again, err := ranktable.Load(table.JSON())
		require.NoError(t, err)
		require.Equal(t, table, again)
		n := len(table.Places())
		for _, a := range table.Judge() {
			require.True(t, a.Order == nil || len(a.Order) == n)
		}
	})
}
