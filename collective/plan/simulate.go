package plan

import "fmt"

// Simulate runs p on vectors in memory, vectors[r] being rank r's, and is the
// oracle of every executor: equal to it to the bit. bounds[r] holds rank r's
// Chunks+1 cuts of its vector; nil cuts all equally. reduce does dst = dst op
// src. Mean's division is not part of a plan.
func Simulate[T any](p Plan, vectors [][]T, bounds [][]int, reduce func(dst, src []T)) error {
	if bounds == nil {
		for _, v := range vectors {
			bounds = append(bounds, Cut(len(v), p.Chunks))
		}
	}
	if len(vectors) != p.Ranks || len(bounds) != p.Ranks {
		return fmt.Errorf("%d vectors and %d bounds for %d ranks", len(vectors), len(bounds), p.Ranks)
	}
	var read []T
	i := 0
	for round := range p.Rounds {
		read = read[:0]
		for _, m := range round {
			read = append(read, vectors[m.From][bounds[m.From][m.Src]:bounds[m.From][m.Src+m.N]]...)
		}
		next := 0
		for j, m := range round {
			size := bounds[m.From][m.Src+m.N] - bounds[m.From][m.Src]
			into := vectors[m.To][bounds[m.To][m.Dst]:bounds[m.To][m.Dst+m.N]]
			if len(into) != size {
				return fmt.Errorf("round %d, move %d (%v): %d elements for %d", i, j, m, size, len(into))
			}
			if m.Reduce {
				reduce(into, read[next:next+size])
			} else {
				copy(into, read[next:next+size])
			}
			next += size
		}
		i++
	}
	return nil
}
