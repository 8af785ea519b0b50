package config

import (
	"fmt"
	"reflect"
	"strings"
)

// Nearest returns the name that s was probably meant to be, or "".
func Nearest(s string, names []string) string {
	best, least := "", 1+max(1, len(s)/3)
	for _, name := range names {
		d := distance(normal(s), normal(name))
		if len(s) >= 3 && (strings.HasPrefix(normal(name), normal(s)) || strings.HasPrefix(normal(s), normal(name)) && len(name) >= 3) {
			d = min(d, least-1)
		}
		if d < least {
			best, least = name, d
		}
	}
	return best
}

// normal makes names that differ in case and separators only equal.
func normal(s string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(s))
}

// distance is the number of letters to insert, delete, replace or swap with a
// neighbour (Damerau 1964, restricted form).
func distance(a, b string) int {
	if len(a) > 100 || len(b) > 100 {
		return max(len(a), len(b))
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			rows[i][j] = min(change, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

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
	near := Nearest(key, known)
	switch {
	case near != "" && (elsewhere == "" || distance(normal(near), normal(key)) <= 1):
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
	near := Nearest(key, last)
	for i := range keys {
		if near != "" && last[i] == near && distance(normal(near), normal(key)) <= 1 {
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
