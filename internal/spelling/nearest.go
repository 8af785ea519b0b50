// Package spelling finds the name that a misspelt one was probably meant to be,
// for the errors of every package that has names.
package spelling

import "strings"

// Nearest returns the name that s was probably meant to be, or "". Case and the
// separators -, _ and blank count for nothing; one letter in three may be wrong.
func Nearest(s string, names []string) string {
	best, least := "", 1+max(1, len(s)/3)
	for _, name := range names {
		d := Distance(s, name)
		if len(s) >= 3 && (strings.HasPrefix(normal(name), normal(s)) || strings.HasPrefix(normal(s), normal(name)) && len(name) >= 3) {
			d = min(d, max(least-1, 1))
		}
		if d < least {
			best, least = name, d
		}
	}
	return best
}

// DidYouMean returns "; did you mean NAME?", or "" when nothing is near.
func DidYouMean(s string, names []string) string {
	if near := Nearest(s, names); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// normal makes names that differ in case and separators only equal.
func normal(s string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(s))
}

// Distance is the number of letters to insert, delete, replace or swap with a
// neighbour (Damerau 1964, restricted form), after normalising case and
// separators.
func Distance(s, name string) int {
	a, b := normal(s), normal(name)
	if len(a) > 100 || len(b) > 100 {
		return max(len(a), len(b))
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			rows[i][j] = min(change, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
