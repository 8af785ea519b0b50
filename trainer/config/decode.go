package config

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// decoder puts the values of one text into a Config.
type decoder struct {
	config *Config
	place  func(line, column int) Position
}

func (d *decoder) errorf(node ast.Node, key, format string, args ...any) error {
	var at Position
	if node != nil && node.GetToken() != nil && node.GetToken().Position != nil {
		p := node.GetToken().Position
		at = d.place(p.Line, p.Column)
	} else {
		at = d.place(0, 0)
	}
	return &Error{Key: key, At: at, Reason: fmt.Sprintf(format, args...)}
}

// value decodes node into v, which key names.
func (d *decoder) value(key string, node ast.Node, v reflect.Value) error {
	switch n := node.(type) {
	case nil, *ast.NullNode:
		if isSection(v) {
			return nil // a section whose keys are all commented out
		}
		return d.errorf(node, key, "%s has no value; it wants %s", key, wants(v))
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		return d.errorf(node, key, "%s: YAML anchors, aliases and tags are not understood here; write the value out, or share settings with include", key)
	case *ast.MappingNode:
		if !isSection(v) {
			break
		}
		return d.mapping(key, n, v)
	case *ast.SequenceNode:
		if v.Kind() != reflect.Slice {
			break
		}
		return d.list(key, n, v)
	default:
		text, ok := scalarText(node)
		if !ok {
			break
		}
		if err := d.scalar(key, node, text, v); err != nil {
			return err
		}
		d.mark(key, node)
		return nil
	}
	return d.errorf(node, key, "%s is %s; it wants %s", key, describe(node), wants(v))
}

// mark remembers where key was given. What was given below it before is over.
func (d *decoder) mark(key string, node ast.Node) {
	p := node.GetToken().Position
	for old := range d.config.positions {
		if strings.HasPrefix(old, key+".") {
			delete(d.config.positions, old)
		}
	}
	d.config.positions[key] = d.place(p.Line, p.Column)
}

func (d *decoder) mapping(key string, n *ast.MappingNode, v reflect.Value) error {
	seen := make(map[string]bool, len(n.Values))
	for _, entry := range n.Values {
		name, ok := keyText(entry.Key)
		if !ok {
			return d.errorf(entry.Key, key, "this is no key; keys are plain names")
		}
		if seen[name] {
			return d.errorf(entry.Key, join(key, name), "%s is given twice", join(key, name))
		}
		seen[name] = true
		if key == "" && name == "include" {
			continue // read by the loader
		}
		field, ok := fieldOf(v, name)
		if !ok {
			return d.errorf(entry.Key, join(key, name), "%s", unknownKey(key, name, keysOf(v.Type())))
		}
		if err := d.value(join(key, name), entry.Value, field); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) list(key string, n *ast.SequenceNode, v reflect.Value) error {
	out := reflect.MakeSlice(reflect.SliceOf(v.Type().Elem()), len(n.Values), len(n.Values))
	for i, element := range n.Values {
		text, ok := scalarText(element)
		if !ok {
			return d.errorf(element, key, "%s: element %d is %s; it wants %s", key, i+1, describe(element), wants(out.Index(i)))
		}
		if err := d.scalar(key, element, text, out.Index(i)); err != nil {
			return err
		}
	}
	if v.SetZero(); out.Len() > 0 {
		v.Set(out.Convert(v.Type()))
	}
	d.mark(key, n)
	return nil
}

// scalar decodes a text into v.
func (d *decoder) scalar(key string, node ast.Node, text string, v reflect.Value) error {
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if err := u.UnmarshalText([]byte(text)); err != nil {
			return d.errorf(node, key, "%s is %s; it wants %s", key, describe(node), err)
		}
		return nil
	}
	quoted := isQuoted(node)
	if err := setScalar(v, text, quoted); err != nil {
		return d.errorf(node, key, "%s is %s; it wants %s%s", key, describe(node), wants(v), hint(err))
	}
	return nil
}

func isQuoted(node ast.Node) bool {
	switch node.GetToken().Type {
	case token.SingleQuoteType, token.DoubleQuoteType, token.LiteralType, token.FoldedType:
		return true
	}
	return false
}

// scalarText returns what was written, without quotes.
func scalarText(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		if n.Value == nil {
			return "", true
		}
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return node.GetToken().Value, true
	}
	return "", false
}

func keyText(key ast.MapKeyNode) (string, bool) {
	if _, merge := key.(*ast.MergeKeyNode); merge || key == nil {
		return "", false
	}
	text, ok := scalarText(key)
	return text, ok && text != ""
}

// describe names what a node is, for "lr is the text "high"".
func describe(node ast.Node) string {
	switch node.(type) {
	case nil, *ast.NullNode:
		return "empty"
	case *ast.MappingNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode, *ast.LiteralNode:
		text, _ := scalarText(node)
		return "the text " + quote(text)
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return quoteless(node.GetToken().Value)
	}
	return "something else"
}

// fieldOf returns the field with a key.
func fieldOf(v reflect.Value, key string) (reflect.Value, bool) {
	for i := range v.NumField() {
		if key != "" && keyOf(v.Type().Field(i)) == key {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// keyOf is the key of a field, or empty where it has none.
func keyOf(f reflect.StructField) string {
	if tag := f.Tag.Get("yaml"); f.IsExported() && tag != "-" {
		return tag
	}
	return ""
}

func isSection(v reflect.Value) bool {
	return v.Kind() == reflect.Struct && len(keysOf(v.Type())) > 0
}

// keysOf lists the keys of a section in their order.
func keysOf(t reflect.Type) []string {
	var keys []string
	for i := range t.NumField() {
		keys = append(keys, keyOf(t.Field(i)))
	}
	return slices.DeleteFunc(keys, func(k string) bool { return k == "" })
}

func join(section, key string) string {
	if section == "" {
		return key
	}
	return section + "." + key
}
