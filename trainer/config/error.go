package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Position is where a value was written. The zero Position is a default.
type Position struct {
	File         string // or empty
	Line, Column int    // from 1, in File; 0 for the file as a whole
	Text         string // the line, without its end
	Given        string // the flag or variable, where it is no file

	source int // which source it was, counted in the order in which they are read
}

// String names the place: file:line:column, the flag, or the variable.
func (p Position) String() string {
	switch {
	case p.Given != "":
		return p.Given
	case p.Line > 0:
		return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	case p.File != "":
		return p.File
	}
	return "the default"
}

// Error is a mistake in the configuration.
type Error struct {
	Key    string // dotted, or empty where there is none
	At     Position
	Reason string // one sentence without a full stop
	Err    error  // the cause, where there is one
}

func (e *Error) Unwrap() error { return e.Err }

// Error says place and reason, and shows the line with a caret under the
// column. It may have three lines.
func (e *Error) Error() string {
	s := e.Reason
	if (e.At != Position{}) {
		s = e.At.String() + ": " + s
	}
	return s + e.At.excerpt()
}

// excerpt is the line, cut around the column when it is long, with the caret.
func (p Position) excerpt() string {
	const before, width = 40, 72
	if p.Line == 0 || p.Column < 1 {
		return ""
	}
	line := []rune(strings.ReplaceAll(p.Text, "\t", " "))
	for i, r := range line {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			line[i] = '?'
		}
	}
	at := min(p.Column-1, len(line))
	cut := ""
	if at > before+20 {
		line, at, cut = line[at-before:], before+4, "... "
	}
	if len(line) > width {
		line = append(line[:width:width], []rune(" ...")...)
	}
	margin := fmt.Sprintf("%5d | ", p.Line)
	return "\n" + strings.TrimRight(margin+cut+string(line), " ") +
		"\n" + strings.Repeat(" ", len(margin)-2) + "| " + strings.Repeat(" ", at) + "^"
}

// Position returns where the key's value, or the nearest enclosing key's, was
// given. For a default that is the zero Position.
func (c *Config) Position(key string) Position {
	for {
		if at, ok := c.positions[key]; ok {
			return at
		}
		dot := strings.LastIndexByte(key, '.')
		if dot < 0 {
			return Position{}
		}
		key = key[:dot]
	}
}

// Errorf makes an error about a key, placed where its value was given or, for
// a default, at the file as a whole.
func (c *Config) Errorf(key, format string, args ...any) *Error {
	at := c.Position(key)
	if at == (Position{}) {
		at.File = c.file
	}
	return &Error{Key: key, At: at, Reason: fmt.Sprintf(format, args...)}
}

// Blame gives an error whose text begins with a key ("data.path: ...") the
// place where that key was given. Other errors come back as they are.
func (c *Config) Blame(err error) error {
	if err == nil || errors.As(err, new(*Error)) {
		return err
	}
	key, _, ok := strings.Cut(err.Error(), ":")
	if !ok || !slices.Contains(Keys(), key) {
		return err
	}
	out := c.Errorf(key, "%s", err)
	out.Err = err
	return out
}
