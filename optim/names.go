package optim

import (
	"fmt"
	"strings"
)

// unknown is the error for a name that is not in known; it proposes the
// nearest one when that is near.
func unknown(what, name string, known []string) error {
	best, distance := "", len(name)/2+1
	for _, k := range known {
		if d := editDistance(name, k); d < distance {
			best, distance = k, d
		}
	}
	hint := ""
	if best != "" {
		hint = fmt.Sprintf(", did you mean %s?", best)
	}
	return fmt.Errorf("optim: unknown %s %q%s (known: %s)", what, name, hint, strings.Join(known, " "))
}

// editDistance is the number of insertions, deletions and substitutions that
// lead from a to b (Levenshtein 1966), over bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
