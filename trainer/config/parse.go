package config

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// mostBrackets bounds the nesting that the recursive parser is handed.
const mostBrackets = 1000

// parse returns the one document's root, nil when it is empty.
func (d *decoder) parse(text []byte) (root ast.Node, err error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors put the byte order mark in front
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return nil, d.errorf(nil, "", "this is no text in UTF-8; a configuration is a YAML file")
	}
	if bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > mostBrackets {
		return nil, d.errorf(nil, "", "there are more than %d brackets, which is too much for a configuration", mostBrackets)
	}
	defer func() { // the parser is fed whatever users have
		if recover() != nil {
			root, err = nil, d.errorf(nil, "", "this cannot be read as YAML")
		}
	}()
	parsed, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, d.syntaxError(err)
	}
	for _, document := range parsed.Docs {
		if document.Body == nil {
			continue
		}
		if root != nil {
			at := document.Body
			if m, ok := at.(*ast.MappingNode); ok && len(m.Values) > 0 {
				at = m.Values[0].Key
			}
			return nil, d.errorf(at, "", "a second YAML document starts here; a configuration is one")
		}
		root = document.Body
	}
	return root, nil
}

// syntaxError puts the parser's finding into our form.
func (d *decoder) syntaxError(err error) error {
	out := &Error{At: d.place(0, 0), Reason: "this cannot be read as YAML: " + strings.SplitN(err.Error(), "\n", 2)[0]}
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) {
		out.Reason = "this cannot be read as YAML: " + syntax.Message
		if t := syntax.Token; t != nil && t.Position != nil {
			out.At = d.place(t.Position.Line, t.Position.Column)
		}
		if indent := out.At.Text[:len(out.At.Text)-len(strings.TrimLeft(out.At.Text, " \t"))]; strings.Contains(indent, "\t") {
			out.Reason = "this cannot be read as YAML: the line is indented with a tab, where YAML wants spaces"
		}
	}
	return out
}
