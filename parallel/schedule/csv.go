package schedule

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// WriteCSV writes a row per rank and a field per action; a rank that does
// nothing is a row of one quoted empty field.
func (s Schedule) WriteCSV(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, list := range s {
		for i, a := range list {
			if i > 0 {
				out.WriteByte(',')
			}
			out.WriteString(a.String())
		}
		if len(list) == 0 {
			out.WriteString(`""`)
		}
		out.WriteByte('\n')
	}
	return out.Flush()
}

// ReadCSV reads what WriteCSV writes. Empty fields are pauses and count for
// nothing, blanks around an action neither; lines that begin with # are
// comments. Errors name line and column.
func ReadCSV(r io.Reader) (Schedule, error) {
	in := csv.NewReader(r)
	in.FieldsPerRecord = -1
	in.Comment = '#'
	in.TrimLeadingSpace = true
	var s Schedule
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return nil, fmt.Errorf("schedule: %w", err)
		}
		list := []Action{}
		for i, field := range row {
			field = strings.TrimSpace(field)
			if field == "" {
				continue
			}
			a, err := ParseAction(field)
			if err != nil {
				line, column := in.FieldPos(i)
				return nil, fmt.Errorf("schedule: line %d, column %d: %w", line, column, err)
			}
			list = append(list, a)
		}
		s = append(s, list)
	}
}
