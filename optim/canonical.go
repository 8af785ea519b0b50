package optim

import "fmt"

// Node is the sum over one subtree of the canonical tree: of the leaves
// [Index<<Level, (Index+1)<<Level).
type Node struct {
	Level, Index int
	Value        float64
}

func (n Node) first() int { return n.Index << n.Level }
func (n Node) end() int   { return (n.Index + 1) << n.Level }

// CanonicalSum adds leaves in the one tree that depends on their indices only:
// the leaves 2i and 2i+1 are added first, then the pairs 2i and 2i+1, and so
// on; the complete subtrees that are left, the set bits of the count, are added
// from the right. It works as a binary counter and holds at most two nodes a
// level.
//
//	         .           leaves [0, 7) on two shards cut at 3:
//	       /   \         [0, 3) gives the nodes (1,0) (0,2),
//	     .       .       [3, 7) gives the nodes (0,3) (1,2) (0,6);
//	   /   \    / \      pushed one after the other they meet again
//	  .     .  .   \     as the whole: (0,2) and (0,3) first, then
//	 / \   / \ / \   \   (1,0) and (1,1).
//	0   1 2  3 4 5   6
//
// So a run of leaves may be cut anywhere: every shard sums its own leaves,
// hands over Nodes, and who pushes all nodes in order has the same bits as who
// adds all leaves. The zero CanonicalSum is empty and starts at leaf 0.
type CanonicalSum struct {
	stack [2 * 64]Node
	count int
	next  int // the leaf that comes next
}

// Start empties c; the next leaf is first.
func (c *CanonicalSum) Start(first int) { c.count, c.next = 0, first }

// Add adds the next leaf.
func (c *CanonicalSum) Add(v float64) { c.Push(Node{Index: c.next, Value: v}) }

// Push adds a node, which must start at the next leaf, or panics.
func (c *CanonicalSum) Push(n Node) {
	if n.first() != c.next {
		panic(fmt.Sprintf("optim: a node of the leaves [%d, %d) pushed, the next leaf is %d", n.first(), n.end(), c.next))
	}
	c.next = n.end()
	for c.count > 0 {
		left := c.stack[c.count-1]
		if left.Level != n.Level || left.Index^1 != n.Index {
			break
		}
		n = Node{Level: n.Level + 1, Index: n.Index / 2, Value: left.Value + n.Value}
		c.count--
	}
	c.stack[c.count] = n
	c.count++
}

// Nodes appends the maximal complete subtrees of the leaves so far, in order.
func (c *CanonicalSum) Nodes(to []Node) []Node { return append(to, c.stack[:c.count]...) }

// Total returns the sum; 0 when nothing was added.
func (c *CanonicalSum) Total() float64 {
	if c.count == 0 {
		return 0
	}
	sum := c.stack[c.count-1].Value
	for i := c.count - 2; i >= 0; i-- {
		sum = c.stack[i].Value + sum
	}
	return sum
}
