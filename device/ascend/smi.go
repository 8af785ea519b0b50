package ascend

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Reading is what npu-smi tells of one device.
type Reading struct {
	NPU, Chip int // the card, and which chip of it
	Name      string
	Health    string // OK, Warning, Alarm, Critical, UNKNOWN
	Processes []Process
}

// Process is one that uses a device.
type Process struct {
	ID       int // as the host numbers it
	Name     string
	MemoryMB int
}

// Fails reports whether a device cannot be worked with.
func (r Reading) Fails() bool { return r.Health == "Alarm" || r.Health == "Critical" }

func (r Reading) String() string {
	s := fmt.Sprintf("NPU %d chip %d (%s): health %s", r.NPU, r.Chip, r.Name, r.Health)
	for i, p := range r.Processes {
		s += []string{", used by ", " and "}[min(i, 1)] + fmt.Sprintf("process %d (%s, %d MB)", p.ID, p.Name, p.MemoryMB)
	}
	return s
}

// ParseSMI reads what "npu-smi info" prints: a table with two lines for each
// device, and one of processes. The devices are in the order in which the runtime
// numbers them, as far as ASCEND_RT_VISIBLE_DEVICES hides none.
func ParseSMI(text string) ([]Reading, error) {
	var all []Reading
	table, second := "", false
	for number, line := range strings.Split(text, "\n") {
		cells := smiCells(line)
		switch {
		case len(cells) < 3:
			continue // a rule, the version, or that there are no processes
		case strings.HasPrefix(cells[0], "NPU"):
			table, second = cells[1], false
			continue
		case strings.HasPrefix(cells[0], "Chip"):
			continue
		}
		var err error
		switch {
		case strings.HasPrefix(table, "Process id"):
			err = smiProcess(all, cells)
		case table != "Health":
			continue
		case second:
			err = smiChip(&all[len(all)-1], cells)
			second = false
		default:
			all, err = smiDevice(all, cells)
			second = true
		}
		if err != nil {
			return nil, fmt.Errorf("npu-smi info, line %d: %w", number+1, err)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("npu-smi info: no table of devices")
	}
	return all, nil
}

// smiCells are the cells of a table's line; none for other lines.
func smiCells(line string) []string {
	line = strings.TrimSpace(line)
	if len(line) < 2 || line[0] != '|' || line[len(line)-1] != '|' {
		return nil
	}
	cells := strings.Split(line[1:len(line)-1], "|")
	for i, c := range cells {
		cells[i] = strings.TrimSpace(c)
	}
	return cells
}

func smiDevice(all []Reading, cells []string) ([]Reading, error) {
	words := strings.Fields(cells[0])
	if len(words) < 2 {
		return nil, fmt.Errorf("%q is no device's number and name", cells[0])
	}
	n, err := smiNumber(words[0])
	return append(all, Reading{NPU: n, Name: strings.Join(words[1:], " "), Health: cells[1]}), err
}

// smiChip reads a device's second line, which begins with the chip's number on its
// card; some chips have a number of the host's after it.
func smiChip(r *Reading, cells []string) (err error) {
	words := strings.Fields(cells[0])
	if len(words) == 0 {
		return errors.New("a device without the number of its chip")
	}
	r.Chip, err = smiNumber(words[0])
	return err
}

func smiProcess(all []Reading, cells []string) error {
	words := strings.Fields(cells[0])
	if len(words) < 2 || len(cells) < 4 {
		return fmt.Errorf("%q is no device's number and chip", cells[0])
	}
	var numbers [4]int
	for i, text := range []string{words[0], words[1], cells[1], cells[3]} {
		var err error
		if numbers[i], err = smiNumber(text); err != nil {
			return err
		}
	}
	for i := range all {
		if all[i].NPU == numbers[0] && all[i].Chip == numbers[1] {
			all[i].Processes = append(all[i].Processes, Process{ID: numbers[2], Name: cells[2], MemoryMB: numbers[3]})
		}
	}
	return nil
}

func smiNumber(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is no number", text)
	}
	return n, nil
}
