package ranktable

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// object lists the fields of v, which has no others than the known ones, given
// as words.
func (p *parser) object(at string, v value, known string) map[string]value {
	out := map[string]value{}
	if v.kind != "object" {
		p.fault(v.line, at, "", "is %s; it has to be an object in braces", article(v.kind))
		return out
	}
	for _, f := range v.fields {
		path := strings.TrimPrefix(at+"."+f.name, ".")
		switch _, twice := out[f.name]; {
		case twice:
			p.fault(f.line, path, "the first one counts", "is given twice")
			continue
		case !slices.Contains(strings.Fields(known), f.name):
			p.fault(f.line, path, "left out", "is no field of a rank table here; known: %s", strings.ReplaceAll(known, " ", ", "))
		}
		out[f.name] = f.value
	}
	return out
}

func (p *parser) list(at string, v value) []value {
	if v.kind == "" {
		p.fault(v.line, at, "", "is missing")
	} else if v.kind != "list" {
		p.fault(v.line, at, "", "is %s; it has to be a list in brackets", article(v.kind))
	}
	return v.items
}

// text reads a scalar, which has to be a JSON string: HCCL rejects bare numbers
// with EI0017.
func (p *parser) text(at string, v value) string {
	switch v.kind {
	case "string":
		return v.text
	case "number", "true or false":
		p.fault(v.line, at, `"`+v.text+`"`, "is the bare %s %s; every value is a string in quotes, or HCCL rejects the table with EI0017", v.kind, v.text)
		return v.text
	}
	p.fault(v.line, at, "", "is %s; it has to be a string in quotes", article(v.kind))
	return ""
}

// article puts one before a kind that takes one.
func article(kind string) string {
	switch kind {
	case "object":
		return "an object"
	case "list", "string", "number":
		return "a " + kind
	}
	return kind
}

// number reads a whole number of at least 0, in quotes.
func (p *parser) number(at string, v value) (int, bool) {
	text := p.text(at, v)
	if text == "" && v.kind != "string" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		p.fault(v.line, at, "", "is %q; it has to be a whole number of at least 0", text)
		return 0, false
	}
	return int(n), true
}

func (p *parser) port(at string, v value) int {
	n, ok := p.number(at, v)
	if ok && (n < 1 || n > 65535) {
		p.fault(v.line, at, "left out", "is %d; a port is 1 to 65535", n)
		return 0
	}
	return n
}

func isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

func (p *parser) address(at string, v value) string {
	text := p.text(at, v)
	if isAddress(text) {
		return text
	}
	if text != "" || v.kind == "string" {
		p.fault(v.line, at, "", "is %q, which is no IP address", text)
	}
	return ""
}
