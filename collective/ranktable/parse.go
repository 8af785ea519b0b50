package ranktable

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Fault is something in a table that HCCL rejects, or reads otherwise than its
// writer meant.
type Fault struct {
	Line  int    `json:"line,omitempty"`  // from 1; 0: the table as a whole
	Field string `json:"field,omitempty"` // such as server_list[0].device[1].rank_id
	Text  string `json:"text"`            // what is wrong, one sentence without a full stop
	// Repair is what Parse did about it in the Table that it returned; empty
	// where only the writer can know what is right.
	Repair string `json:"repair,omitempty"`
}

func (f Fault) String() string {
	var b strings.Builder
	if f.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", f.Line)
	}
	if f.Field != "" {
		b.WriteString(f.Field + ": ")
	}
	b.WriteString(f.Text)
	return b.String()
}

// Parse reads a table. It returns what it could make of the text together with
// all faults, in the order of the text; a table without faults is valid. The
// error is of a text that is no JSON object at all.
func Parse(text []byte) (*Table, []Fault, error) {
	root, err := read(text)
	if err != nil {
		return nil, nil, err
	}
	if root.kind != "object" {
		return nil, nil, &SyntaxError{Line: root.line, Text: "a rank table is an object in braces, this is " + article(root.kind)}
	}
	p := &parser{}
	p.table(root)
	p.whole()
	slices.SortStableFunc(p.faults, func(a, b Fault) int { return cmp.Compare(uint(a.Line-1), uint(b.Line-1)) }) // 0 last
	return &p.out, p.faults, nil
}

// Load is Parse for who needs a valid table: all faults make one error.
func Load(text []byte) (*Table, error) {
	t, faults, err := Parse(text)
	if err != nil {
		return nil, err
	}
	if len(faults) == 0 {
		return t, nil
	}
	errs := make([]error, len(faults))
	for i, f := range faults {
		errs[i] = errors.New(f.String())
	}
	return nil, errors.Join(errs...)
}

type parser struct {
	out    Table
	faults []Fault
	// ranked says whether any device has a rank_id, unranked whether any lacks it.
	ranked, unranked bool
}

func (p *parser) fault(line int, field, repair, format string, args ...any) {
	p.faults = append(p.faults, Fault{Line: line, Field: field, Text: fmt.Sprintf(format, args...), Repair: repair})
}

func (p *parser) table(root value) {
	f := p.object("", root, "status version server_count server_list super_pod_list group_count group_list")
	p.status(f)
	if _, old := f["group_list"]; old {
		p.oldTemplate(f)
		return
	}
	p.version(root, f)
	count, has := f["server_count"]
	list, ok := f["server_list"]
	if !ok {
		p.fault(root.line, "server_list", "", "is missing: the list of servers with their devices")
		return
	}
	for i, v := range p.list("server_list", list) {
		p.server(fmt.Sprintf("server_list[%d]", i), v)
	}
	if has {
		if n, ok := p.number("server_count", count); ok && n != len(p.out.Servers) {
			p.fault(count.line, "server_count", fmt.Sprintf("%d", len(p.out.Servers)), "is %d, but server_list has %d servers", n, len(p.out.Servers))
		}
	} else if p.out.Version != "1.2" {
		p.fault(root.line, "server_count", fmt.Sprintf("%d", len(p.out.Servers)), "is missing")
	}
	if pods, ok := f["super_pod_list"]; ok {
		for i, v := range p.list("super_pod_list", pods) {
			p.superPod(fmt.Sprintf("super_pod_list[%d]", i), v)
		}
	}
}

func (p *parser) status(f map[string]value) {
	v, ok := f["status"]
	if !ok {
		p.fault(1, "status", "completed", "is missing; a table that may be used says completed")
		return
	}
	switch s := p.text("status", v); s {
	case "completed":
	case "initializing":
		p.fault(v.line, "status", "completed", "is initializing: whoever writes the table is not done, and HCCL waits up to half an hour for completed")
	default:
		p.fault(v.line, "status", "completed", "is %q; it has to be completed", s)
	}
}

func (p *parser) version(root value, f map[string]value) {
	p.out.Version = "1.0"
	v, ok := f["version"]
	if !ok {
		p.fault(root.line, "version", "1.0", "is missing, and without it HCCL takes the table for the older template with group_list")
		return
	}
	switch s := p.text("version", v); s {
	case "1.0", "1.1", "1.2":
		p.out.Version = s
	case "2.0":
		p.fault(v.line, "version", "", "is 2.0, the format of Ascend 950, which this version does not read; 910, 910B and 910C take 1.0 or 1.2")
	default:
		p.fault(v.line, "version", "1.0", "is %q; it has to be 1.0, or 1.2 with super pods", s)
	}
}

func (p *parser) server(at string, v value) {
	f := p.object(at, v, "server_id host_ip host_nic_ip device")
	s := Server{}
	if id, ok := f["server_id"]; !ok {
		s.ID = fmt.Sprintf("server_%d", len(p.out.Servers))
		p.fault(v.line, at+".server_id", s.ID, "is missing; each server has a name of its own")
	} else if s.ID = p.text(at+".server_id", id); s.ID == "" || len(s.ID) > 64 {
		p.fault(id.line, at+".server_id", "", "is %q; it has to have 1 to 64 characters", s.ID)
	}
	if ip, ok := f["host_ip"]; ok {
		s.HostIP = p.address(at+".host_ip", ip)
	}
	if nic, ok := f["host_nic_ip"]; ok {
		text := p.text(at+".host_nic_ip", nic)
		switch {
		case s.HostIP == "" && isAddress(text):
			s.HostIP = text
			p.fault(nic.line, at+".host_nic_ip", "written as host_ip", "is no field that HCCL reads; the host's address is host_ip")
		default:
			p.fault(nic.line, at+".host_nic_ip", "left out", "is no field that HCCL reads")
		}
	}
	if devices, ok := f["device"]; !ok {
		p.fault(v.line, at+".device", "", "is missing: the list of this server's devices")
	} else {
		list := p.list(at+".device", devices)
		if len(list) == 0 && devices.kind == "list" {
			p.fault(devices.line, at+".device", "", "is empty; a server has at least one device")
		}
		for i, d := range list {
			s.Devices = append(s.Devices, p.device(fmt.Sprintf("%s.device[%d]", at, i), d, i))
		}
	}
	p.out.Servers = append(p.out.Servers, s)
}

func (p *parser) device(at string, v value, index int) Device {
	f := p.object(at, v, "device_id device_ip device_port host_port rank_id super_device_id backup_device_ip backup_device_port")
	d := Device{ID: index, Rank: -1}
	if id, ok := f["device_id"]; !ok {
		p.fault(v.line, at+".device_id", strconv.Itoa(index), "is missing: N of /dev/davinciN")
	} else if n, ok := p.number(at+".device_id", id); ok {
		d.ID = n
	}
	if rank, ok := f["rank_id"]; !ok {
		p.unranked = true
		p.fault(v.line, at+".rank_id", "numbered in the order of the table", "is missing; every device has the number of its rank")
	} else if n, ok := p.number(at+".rank_id", rank); ok {
		d.Rank, p.ranked = n, true
	}
	if ip, ok := f["device_ip"]; ok {
		d.IP = p.address(at+".device_ip", ip)
	}
	if ip, ok := f["backup_device_ip"]; ok {
		d.BackupIP = p.address(at+".backup_device_ip", ip)
	}
	for _, port := range []struct {
		name string
		to   *int
	}{{"device_port", &d.Port}, {"host_port", &d.HostPort}, {"backup_device_port", &d.BackupPort}} {
		if v, ok := f[port.name]; ok {
			*port.to = p.port(at+"."+port.name, v)
		}
	}
	if id, ok := f["super_device_id"]; ok {
		d.Super = p.text(at+".super_device_id", id)
	}
	return d
}

func (p *parser) superPod(at string, v value) {
	f := p.object(at, v, "super_pod_id server_list")
	var pod SuperPod
	if id, ok := f["super_pod_id"]; ok {
		pod.ID = p.text(at+".super_pod_id", id)
	} else {
		p.fault(v.line, at+".super_pod_id", "", "is missing")
	}
	for i, s := range p.list(at+".server_list", f["server_list"]) {
		at := fmt.Sprintf("%s.server_list[%d]", at, i)
		id, ok := p.object(at, s, "server_id")["server_id"]
		if !ok {
			p.fault(s.line, at+".server_id", "", "is missing")
			continue
		}
		name := p.text(at+".server_id", id)
		if !slices.ContainsFunc(p.out.Servers, func(s Server) bool { return s.ID == name }) {
			p.fault(id.line, at+".server_id", "", "names %q, which is no server of server_list", name)
		}
		pod.Servers = append(pod.Servers, name)
	}
	p.out.SuperPods = append(p.out.SuperPods, pod)
}
