package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/gradfusion/gradfusion/internal/spelling"
)

// unknownKey says that a section has no such key and what was probably meant:
// a known key of the section, the key that replaces a setting of another
// system, a key of that name elsewhere, or else the section's list.
func unknownKey(section, key string, known []string) string {
	where := "at the top"
	if section != "" {
		where = "in " + section
	}
	head := fmt.Sprintf("unknown key %s %s", quote(key), where)
	if section == "" {
		known = append([]string{"include"}, known...)
	}
	if instead := foreign(key); instead != "" {
		return head + ": " + instead
	}
	elsewhere := sameName(key)
	near := spelling.Nearest(key, known)
	switch {
	case near != "" && (elsewhere == "" || spelling.Distance(near, key) <= 1):
		return fmt.Sprintf("%s; did you mean %s?", head, near)
	case elsewhere != "":
		return fmt.Sprintf("%s; did you mean %s?", head, elsewhere)
	}
	if instead := foreignNearly(key); instead != "" {
		return head + ": " + instead
	}
	return fmt.Sprintf("%s; known: %s", head, strings.Join(known, ", "))
}

// sameName finds a key of that name, or nearly, in any section.
func sameName(key string) string {
	var keys, last []string
	for _, full := range Keys() {
		keys = append(keys, full)
		last = append(last, full[strings.LastIndexByte(full, '.')+1:])
	}
	near := spelling.Nearest(key, last)
	for i := range keys {
		if near != "" && last[i] == near && spelling.Distance(near, key) <= 1 {
			return keys[i]
		}
	}
	return ""
}

// Keys lists every dotted key that has a value, in the order of the YAML.
func Keys() []string {
	var keys []string
	eachLeaf("", reflect.ValueOf(Default()).Elem(), func(key string, _ reflect.Value) { keys = append(keys, key) })
	return keys
}

// eachLeaf calls f for every value below v that has no keys of its own.
func eachLeaf(key string, v reflect.Value, f func(string, reflect.Value)) {
	if _, text := v.Interface().(interface{ MarshalText() ([]byte, error) }); text || v.Kind() != reflect.Struct {
		f(key, v)
		return
	}
	for i := range v.NumField() {
		if name := keyOf(v.Type().Field(i)); name != "" {
			eachLeaf(join(key, name), v.Field(i), f)
		}
	}
}
