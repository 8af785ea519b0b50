package ranktable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// value is a piece of JSON that knows its line.
type value struct {
	line   int
	kind   string // object, list, string, number, true or false, null
	text   string // of a scalar
	fields []field
	items  []value
}

type field struct {
	name string
	value
}

// deepest bounds what is read into memory; a rank table is five deep.
const deepest = 16

// reader turns text into values.
type reader struct {
	text    []byte
	decoder *json.Decoder
}

// read parses a whole text. Its error names the line.
func read(text []byte) (value, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return value{}, &SyntaxError{Line: 1, Text: "the file is empty"}
	}
	r := reader{text: text, decoder: json.NewDecoder(bytes.NewReader(text))}
	r.decoder.UseNumber()
	v, err := r.value(0)
	if err == nil {
		if _, more := r.decoder.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("text follows the table's last brace")
		}
	}
	if err != nil {
		return value{}, &SyntaxError{Line: r.line(), Text: strings.TrimPrefix(err.Error(), "json: ")}
	}
	return v, nil
}

// SyntaxError is a text that is no JSON.
type SyntaxError struct {
	Line int
	Text string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: no JSON: %s", e.Line, e.Text) }

func (r *reader) line() int {
	at := min(int(r.decoder.InputOffset()), len(r.text))
	return 1 + bytes.Count(r.text[:at], []byte("\n"))
}

func (r *reader) value(depth int) (value, error) {
	token, err := r.decoder.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return value{}, err
	}
	if depth > deepest {
		return value{}, fmt.Errorf("nested more than %d deep", deepest)
	}
	v := value{line: r.line()}
	switch x := token.(type) {
	case json.Delim:
		if x == '{' {
			v.kind = "object"
			return v, r.object(&v, depth)
		}
		v.kind = "list"
		return v, r.list(&v, depth)
	case string:
		v.kind, v.text = "string", x
	case json.Number:
		v.kind, v.text = "number", x.String()
	case nil:
		v.kind, v.text = "null", "null"
	default:
		v.kind, v.text = "true or false", fmt.Sprint(x)
	}
	return v, nil
}

func (r *reader) object(v *value, depth int) error {
	for r.decoder.More() {
		name, err := r.decoder.Token()
		if err != nil {
			return err
		}
		text, ok := name.(string)
		if !ok {
			return fmt.Errorf("%v is no name of a field", name)
		}
		x, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		v.fields = append(v.fields, field{text, x})
	}
	_, err := r.decoder.Token()
	return unexpectedEnd(err)
}

func (r *reader) list(v *value, depth int) error {
	for r.decoder.More() {
		x, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		v.items = append(v.items, x)
	}
	_, err := r.decoder.Token()
	return unexpectedEnd(err)
}

func unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
