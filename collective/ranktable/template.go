package ranktable

import "fmt"

// oldTemplate reads the template of early 910 software, which has no version and
// no ranks: groups of instances ("pods") with devices. Ranks are numbered in the
// order of the file, as the software of that time did.
func (p *parser) oldTemplate(f map[string]value) {
	p.out.Version = "1.0"
	list := f["group_list"]
	p.fault(list.line, "group_list", "written as server_list of version 1.0", "is the older template, which present versions of HCCL do not read")
	for i, group := range p.list("group_list", list) {
		at := fmt.Sprintf("group_list[%d]", i)
		g := p.object(at, group, "group_name instance_count device_count instance_list")
		for k, instance := range p.list(at+".instance_list", g["instance_list"]) {
			p.oldInstance(fmt.Sprintf("%s.instance_list[%d]", at, k), instance)
		}
	}
	p.unranked = true
}

func (p *parser) oldInstance(at string, v value) {
	f := p.object(at, v, "pod_name server_id devices")
	id, ok := f["server_id"]
	name := fmt.Sprintf("server_%d", len(p.out.Servers))
	if ok {
		name = p.text(at+".server_id", id)
	} else {
		p.fault(v.line, at+".server_id", name, "is missing; each server has a name of its own")
	}
	var server *Server
	for i := range p.out.Servers {
		if p.out.Servers[i].ID == name {
			server = &p.out.Servers[i] // several instances of one host
		}
	}
	if server == nil {
		p.out.Servers = append(p.out.Servers, Server{ID: name})
		server = &p.out.Servers[len(p.out.Servers)-1]
		if isAddress(name) {
			server.HostIP = name
		}
	}
	for i, d := range p.list(at+".devices", f["devices"]) {
		at := fmt.Sprintf("%s.devices[%d]", at, i)
		fields := p.object(at, d, "device_id device_ip")
		device := Device{ID: len(server.Devices), Rank: -1}
		if id, ok := fields["device_id"]; ok {
			if n, ok := p.number(at+".device_id", id); ok {
				device.ID = n
			}
		} else {
			p.fault(d.line, at+".device_id", fmt.Sprint(device.ID), "is missing: N of /dev/davinciN")
		}
		if ip, ok := fields["device_ip"]; ok {
			device.IP = p.address(at+".device_ip", ip)
		}
		server.Devices = append(server.Devices, device)
	}
}
