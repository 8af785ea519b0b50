package plan

import (
	"fmt"
	"strings"
)

// hint says which name was probably meant, or lists all.
func hint(name string, known []string) string {
	best, least := "", 1+max(1, len(name)/3)
	for _, k := range known {
		if d := distance(name, k); d < least {
			best, least = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("; did you mean %s?", best)
	}
	return fmt.Sprintf(" (known: %s)", strings.Join(known, " "))
}

// distance is how many letters to insert, delete, replace or swap with a
// neighbour (Damerau 1964, restricted form).
func distance(a, b string) int {
	if len(a) > 100 {
		return len(a)
	}
	var older, old []int
	row := span(len(b) + 1)
	for i := range len(a) {
		older, old, row = old, row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := old[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, old[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], older[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
