package trainer

import "fmt"

// amount writes a number of bytes in the unit that suits it.
func amount(bytes float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	for bytes >= 999.5 && len(units) > 1 { // which three digits would round to 1e+03
		bytes, units = bytes/1024, units[1:]
	}
	return fmt.Sprintf("%.3g %s", bytes, units[0])
}
