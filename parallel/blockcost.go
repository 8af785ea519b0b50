package parallel

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// BlockCost is what a block takes of a micro-batch of training. Times may be in
// any one unit; whether they were measured or counted is the caller's.
type BlockCost struct {
	Name        string
	Forward     float64 // time
	Backward    float64 // of both halves
	Parameters  int     // bytes of the block's parameters
	Activations int     // bytes that a forward pass keeps for the backward pass
	Output      int     // bytes that go to the next block
}

// recomputed is the cost of a block that runs its forward pass again instead of
// keeping more than it gives.
func (c BlockCost) recomputed() BlockCost {
	c.Backward += c.Forward
	c.Activations = min(c.Activations, c.Output)
	return c
}

// costColumns is the heading of a table of costs.
func costColumns() []string {
	return []string{"block", "forward", "backward", "parameter_bytes", "activation_bytes", "output_bytes"}
}

// WriteCosts writes a table of costs as CSV, a line per block under a heading.
func WriteCosts(w io.Writer, costs []BlockCost) error {
	out := csv.NewWriter(w)
	if err := out.Write(costColumns()); err != nil {
		return err
	}
	for _, c := range costs {
		float := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
		row := []string{c.Name, float(c.Forward), float(c.Backward), strconv.Itoa(c.Parameters), strconv.Itoa(c.Activations), strconv.Itoa(c.Output)}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// ReadCosts reads what WriteCosts writes; lines that begin with # are comments.
// Errors name line and column.
func ReadCosts(r io.Reader) ([]BlockCost, error) {
	in := csv.NewReader(r)
	in.Comment, in.TrimLeadingSpace = '#', true
	columns := costColumns()
	in.FieldsPerRecord = len(columns)
	head, err := in.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("costs: the file is empty")
	} else if err != nil {
		return nil, fmt.Errorf("costs: %w", err)
	}
	if !slices.Equal(head, columns) {
		return nil, fmt.Errorf("costs: the first line is %s, want %s", strings.Join(head, ","), strings.Join(columns, ","))
	}
	var out []BlockCost
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("costs: %w", err)
		}
		c := BlockCost{Name: row[0]}
		for i, to := range []*float64{&c.Forward, &c.Backward} {
			if *to, err = strconv.ParseFloat(row[1+i], 64); err != nil || !(*to >= 0) || math.IsInf(*to, 0) {
				return nil, costFault(in, row, 1+i, "is no time")
			}
		}
		for i, to := range []*int{&c.Parameters, &c.Activations, &c.Output} {
			if *to, err = strconv.Atoi(row[3+i]); err != nil || *to < 0 {
				return nil, costFault(in, row, 3+i, "is no number of bytes")
			}
		}
		out = append(out, c)
	}
}

func costFault(in *csv.Reader, row []string, field int, what string) error {
	line, column := in.FieldPos(field)
	return fmt.Errorf("costs: line %d, column %d: %s %q %s", line, column, costColumns()[field], row[field], what)
}
