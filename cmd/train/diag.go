package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/gradfusion/gradfusion/collective/ranktable"
)

const diagHelp = `train diag checks a rank table, the file that tells which rank runs on which
device of which server.

    train diag -rank-table FILE [-fix OUT] [-json]

    -rank-table FILE  name its faults by line and field, list the ranks, and
                      judge how they are placed
    -fix OUT          write a valid table, if all faults can be repaired
    -json             one object instead of text

Exit codes: 0 the table is valid or OUT is, 2 it is not.
`

// diagnosis is what "train diag -rank-table" found, as -json prints it.
type diagnosis struct {
	File    string             `json:"file"`
	Valid   bool               `json:"valid"`
	Version string             `json:"version,omitempty"`
	Faults  []ranktable.Fault  `json:"faults"`
	Ranks   []rankReport       `json:"ranks"`
	Advice  []ranktable.Advice `json:"advice"`
	Fixed   string             `json:"fixed,omitempty"` // the file written

	table *ranktable.Table
}

type rankReport struct {
	Rank     int    `json:"rank"`
	Server   string `json:"server"`
	Device   int    `json:"device"`
	DeviceIP string `json:"device_ip,omitempty"`
}

// runDiag checks what the flags name.
func (c *command) runDiag(args []string) error {
	var table, fix string
	var asJSON bool
	flags := flag.NewFlagSet("train diag", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&table, "rank-table", "", "")
	flags.StringVar(&fix, "fix", "", "")
	flags.BoolVar(&asJSON, "json", false, "")
	missing := ""
	for _, later := range []string{"nproc", "hosts", "listen", "connect"} {
		flags.Func(later, "", func(string) error {
			missing = later
			return errors.ErrUnsupported
		})
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return c.help([]string{"diag"})
	case missing != "":
		return usage("train diag -%s is not in this version yet", missing)
	case err != nil:
		return flagError(err, func(name string) error {
			return usage("unknown flag -%s%s", name, suggestion(name, []string{"rank-table", "fix", "json"}))
		})
	case len(flags.Args()) > 0:
		return usage("%q is no flag and belongs to none, as in \"train diag -rank-table hccl.json\"", flags.Arg(0))
	case table == "":
		return usage("diagnose what? In this version train diag checks rank tables: \"train diag -rank-table FILE\"")
	}
	d, err := diagnose(table)
	if err != nil {
		return usage("%v", err)
	}
	refused := d.fix(fix)
	if asJSON {
		err = json.NewEncoder(c.stdout).Encode(d)
	} else {
		_, err = io.WriteString(c.stdout, d.String())
	}
	return errors.Join(refused, err)
}

// diagnose reads a table.
func diagnose(file string) (*diagnosis, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	table, faults, err := ranktable.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	d := &diagnosis{File: file, Valid: len(faults) == 0, Version: table.Version, table: table, Faults: []ranktable.Fault{}, Ranks: []rankReport{}, Advice: []ranktable.Advice{}}
	d.Faults = append(d.Faults, faults...)
	if d.beyondRepair() > 0 {
		return d, nil
	}
	for _, p := range table.Places() {
		d.Ranks = append(d.Ranks, rankReport{p.Device.Rank, table.Servers[p.Server].ID, p.Device.ID, p.Device.IP})
	}
	d.Advice = append(d.Advice, table.Judge()...)
	return d, nil
}

// beyondRepair counts the faults that only the writer can mend.
func (d *diagnosis) beyondRepair() (n int) {
	for _, f := range d.Faults {
		if f.Repair == "" {
			n++
		}
	}
	return n
}

// fix writes the repaired table to a new file, if it can be, and returns the error
// to end with.
func (d *diagnosis) fix(out string) error {
	beyond := d.beyondRepair()
	switch {
	case out == "" && d.Valid:
		return nil
	case out == "" && beyond == 0:
		return usage("%s is not valid; -fix OUT writes a table that is", d.File)
	case beyond > 0:
		return usage("%s is not valid, and %d of its faults only you can mend: those without a repair", d.File, beyond)
	}
	file, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return usage("-fix: %s is there already, and is not overwritten", out)
	} else if err != nil {
		return usage("-fix: %v", err)
	}
	_, err = file.Write(d.table.JSON())
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(fmt.Errorf("-fix: %w", err), os.Remove(out))
	}
	d.Fixed = out
	return nil
}

// String is the diagnosis for people.
func (d *diagnosis) String() string {
	var b strings.Builder
	for _, f := range d.Faults {
		b.WriteString(wrap(f.String(), width))
		if f.Repair != "" {
			fmt.Fprintf(&b, "    repair: %s\n", f.Repair)
		}
	}
	if len(d.Ranks) > 0 {
		fmt.Fprintf(&b, "%-6s %-7s %-16s %s\n", "rank", "device", "address", "server")
	}
	for _, r := range d.Ranks {
		fmt.Fprintf(&b, "%-6d %-7d %-16s %s\n", r.Rank, r.Device, r.DeviceIP, r.Server)
	}
	for _, a := range d.Advice {
		text := "advice: " + a.Text
		if a.Order != nil {
			text += fmt.Sprintf("; better, from rank 0 on, would be those that are now %v", a.Order)
		}
		b.WriteString(wrap(text, width))
	}
	if d.Fixed != "" {
		fmt.Fprintf(&b, "written: %s\n", d.Fixed)
	} else if d.Valid {
		fmt.Fprintf(&b, "%s is valid\n", d.File)
	}
	return b.String()
}
