package config

import (
	"bytes"
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// YAML writes the settings, every one, in a form that Load reads back to the
// same. Settings of models, data sets and formats that were not chosen are
// left out.
func (c *Config) YAML() []byte {
	var b bytes.Buffer
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		if name := keyOf(v.Type().Field(i)); name != "" {
			fmt.Fprintf(&b, "%s:\n", name)
			c.writeSection(&b, "  ", name, v.Field(i))
		}
	}
	return b.Bytes()
}

func (c *Config) writeSection(b *bytes.Buffer, indent, section string, v reflect.Value) {
	for i := range v.NumField() {
		name := keyOf(v.Type().Field(i))
		key := join(section, name)
		if name == "" || c.belongsTo(key) != "" {
			continue
		}
		if field := v.Field(i); isSection(field) {
			fmt.Fprintf(b, "%s%s:\n", indent, name)
			c.writeSection(b, indent+"  ", key, field)
		} else {
			fmt.Fprintf(b, "%s%s: %s\n", indent, name, leafText(field))
		}
	}
}

// leafText is a value as YAML on one line.
func leafText(v reflect.Value) string {
	if v.Type() == reflect.TypeFor[Names]() {
		if v.IsNil() {
			return "auto"
		}
	} else if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		text, err := m.MarshalText()
		if err != nil {
			panic(err) // the types of this package do not fail on checked values
		}
		return string(text)
	}
	if v.Type() == reflect.TypeFor[time.Duration]() {
		return duration(time.Duration(v.Int()))
	}
	switch v.Kind() {
	case reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = leafText(v.Index(i))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	case reflect.String:
		return plainOrQuoted(v.String())
	}
	return fmt.Sprint(v.Interface())
}

// plainOrQuoted quotes what YAML might read otherwise.
func plainOrQuoted(s string) string {
	plain := s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_./-", r))
	}) < 0 && (s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z' || s[0] >= '0' && s[0] <= '9' || s[0] == '/')
	switch strings.ToLower(s) {
	case "null", "true", "false":
		plain = false
	}
	if plain {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xfeff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
