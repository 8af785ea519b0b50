package plan

// MultiRoot is the union over roots: each root has its own equal part of the
// vector, which goes up and down a tree of its own, all side by side.
//
//	part 0: 0 ◄─ all ─► 0      part 1: 2 ◄─ all ─► 2     roots 0 and 2
//
// Rounds as Tree's. The work of a root is shared by as many as there are. It
// does AllReduce and Barrier, the kinds of a tree that need no particular root.
func MultiRoot(k Kind, ranks int, roots []int) Plan {
	trees := make([]Plan, len(roots))
	for i, root := range roots {
		trees[i] = Tree(k, ranks, root)
	}
	return Union(trees...)
}
