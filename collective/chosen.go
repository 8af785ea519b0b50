package collective

// AlgorithmOf names the algorithm by which the group would carry out c, as
// plan.Algorithm has it, or "fold" for sums of 16-bit types; "" where c has a
// mistake.
func (g *Group) AlgorithmOf(c Call) string {
	prog, err := g.compile(&c)
	if err != nil {
		return ""
	}
	return prog.header.algorithm
}
