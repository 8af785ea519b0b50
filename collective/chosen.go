package collective

// AlgorithmOf names the algorithm by which the group would carry out c, as
// plan.Algorithm has it, or "fold" for sums of 16-bit types by messages, "paced"
// for all-reduces over slow links, or the Codec's name; "" where c has a mistake.
// Like SharesMemory it must not be called while calls run.
func (g *Group) AlgorithmOf(c Call) string {
	prog, err := g.compile(&c)
	switch {
	case err != nil:
		return ""
	case g.executor.shares(&c, prog):
		return "direct"
	}
	return prog.header.algorithm
}

// SharesMemory reports whether Alloc gives memory that all ranks of the group
// can read and write.
func (g *Group) SharesMemory() bool { return g.executor.openShared() != nil }
