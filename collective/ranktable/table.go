package ranktable

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
)

// Table is a rank table. What is optional and absent is empty.
type Table struct {
	Version   string // "1.0", "1.1" or "1.2"
	Servers   []Server
	SuperPods []SuperPod // of version 1.2
}

// Server is one host with its devices, in the order of the file.
type Server struct {
	ID      string
	HostIP  string
	Devices []Device
}

// Device is one device and the rank that it runs.
type Device struct {
	ID       int // the physical one, N of /dev/davinciN
	Rank     int
	IP       string // of the device's own network port
	Port     int    // 0: not given
	HostPort int    // 0: not given
	Super    string // super_device_id of version 1.2

	BackupIP   string
	BackupPort int
}

// SuperPod lists the servers of one super pod.
type SuperPod struct {
	ID      string
	Servers []string
}

// Place is where a rank runs.
type Place struct {
	Server int // index in Table.Servers
	Device Device
}

// Places returns the place of every rank.
func (t *Table) Places() []Place {
	var out []Place
	for s, server := range t.Servers {
		for _, d := range server.Devices {
			out = append(out, Place{s, d})
		}
	}
	slices.SortStableFunc(out, func(a, b Place) int { return cmp.Compare(a.Device.Rank, b.Device.Rank) })
	return out
}

// Hosts lists the ranks by server, as collective.Comm.Hosts does: ascending in a
// server, the servers by their lowest rank.
func (t *Table) Hosts() [][]int {
	var out [][]int
	for _, server := range t.Servers {
		var ranks []int
		for _, d := range server.Devices {
			ranks = append(ranks, d.Rank)
		}
		slices.Sort(ranks)
		if len(ranks) > 0 {
			out = append(out, ranks)
		}
	}
	slices.SortFunc(out, func(a, b []int) int { return a[0] - b[0] })
	return out
}

// The file's own shape, in which every scalar is a string.
type fileTable struct {
	Status      string     `json:"status"`
	Version     string     `json:"version"`
	ServerCount string     `json:"server_count"`
	Servers     []fileHost `json:"server_list"`
	SuperPods   []filePod  `json:"super_pod_list,omitempty"`
}

type fileHost struct {
	ID      string       `json:"server_id"`
	HostIP  string       `json:"host_ip,omitempty"`
	Devices []fileDevice `json:"device"`
}

type fileDevice struct {
	ID         string `json:"device_id"`
	IP         string `json:"device_ip,omitempty"`
	Port       string `json:"device_port,omitempty"`
	HostPort   string `json:"host_port,omitempty"`
	Super      string `json:"super_device_id,omitempty"`
	BackupIP   string `json:"backup_device_ip,omitempty"`
	BackupPort string `json:"backup_device_port,omitempty"`
	Rank       string `json:"rank_id"`
}

type filePod struct {
	ID      string        `json:"super_pod_id"`
	Servers []filePodHost `json:"server_list"`
}

type filePodHost struct {
	ID string `json:"server_id"`
}

// JSON returns the table as HCCL reads it, ending with a newline.
func (t *Table) JSON() []byte {
	out := fileTable{Status: "completed", Version: t.Version, ServerCount: strconv.Itoa(len(t.Servers)), Servers: []fileHost{}}
	for _, s := range t.Servers {
		host := fileHost{ID: s.ID, HostIP: s.HostIP, Devices: []fileDevice{}}
		for _, d := range s.Devices {
			host.Devices = append(host.Devices, fileDevice{
				ID: strconv.Itoa(d.ID), Rank: strconv.Itoa(d.Rank), IP: d.IP, Port: port(d.Port), HostPort: port(d.HostPort),
				Super: d.Super, BackupIP: d.BackupIP, BackupPort: port(d.BackupPort),
			})
		}
		out.Servers = append(out.Servers, host)
	}
	for _, p := range t.SuperPods {
		pod := filePod{ID: p.ID, Servers: []filePodHost{}}
		for _, id := range p.Servers {
			pod.Servers = append(pod.Servers, filePodHost{id})
		}
		out.SuperPods = append(out.SuperPods, pod)
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		panic(err) // strings and lists of them
	}
	return append(text, '\n')
}

func port(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
