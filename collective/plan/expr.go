package plan

import (
	"fmt"
	"math/bits"
	"strings"
)

// value is what a chunk holds, as the expression of sums that made it: nothing
// (0), the chunk c that rank r started with (1 + r*chunks + c), or a sum.
//
// Equal expressions have equal values: sums are kept once, and the two sides of
// a sum in one order, because a+b and b+a have the same bits. Sums of different
// shape stay different, because (a+b)+c and a+(b+c) have not.
type value int32

const nothing value = 0

// sum is one reduction and the move that made it first.
type sum struct {
	left, right value
	chunk       int32
	round, move int32
}

// expressions holds the sums of one or several plans of equal size.
type expressions struct {
	ranks, chunks int
	sums          []sum
	table         []value // the sums, hashed by their sides; a power of two long
	seen          []int32 // per rank, the walk that met it last
	walk          int32
}

// newExpressions makes room for every rank's value in one sum of each chunk.
func newExpressions(ranks, chunks int, k Kind) *expressions {
	e := &expressions{ranks: ranks, chunks: chunks, seen: make([]int32, ranks)}
	if k.Reduces() {
		e.sums = make([]sum, 0, ranks*chunks)
	}
	e.table = make([]value, max(64, 1<<bits.Len(uint(2*cap(e.sums)))))
	return e
}

func (e *expressions) leaf(rank, chunk int) value { return value(1 + rank*e.chunks + chunk) }

func (e *expressions) isLeaf(v value) bool { return int(v) <= e.ranks*e.chunks }

func (e *expressions) leafOf(v value) (rank, chunk int) {
	return int(v-1) / e.chunks, int(v-1) % e.chunks
}

func (e *expressions) sum(v value) sum { return e.sums[int(v)-e.ranks*e.chunks-1] }

// chunk is the chunk of the start vectors that v is made of.
func (e *expressions) chunk(v value) int {
	if e.isLeaf(v) {
		_, chunk := e.leafOf(v)
		return chunk
	}
	return int(e.sum(v).chunk)
}

// add returns the sum of two values of the same chunk.
func (e *expressions) add(a, b value, round, move int) value {
	left, right := min(a, b), max(a, b)
	at := e.find(left, right)
	if e.table[at] == nothing {
		e.sums = append(e.sums, sum{left, right, int32(e.chunk(a)), int32(round), int32(move)})
		v := value(e.ranks*e.chunks + len(e.sums))
		e.table[at] = v
		if 2*len(e.sums) > len(e.table) {
			e.grow()
		}
		return v
	}
	return e.table[at]
}

// find returns where in the table the sum of two values is, or would be.
func (e *expressions) find(left, right value) int {
	h := (uint64(uint32(left))<<32 | uint64(uint32(right))) * 0x9e3779b97f4a7c15
	mask := len(e.table) - 1
	for at := int(h>>32) & mask; ; at = (at + 1) & mask {
		v := e.table[at]
		if v == nothing {
			return at
		}
		if s := &e.sums[int(v)-e.ranks*e.chunks-1]; s.left == left && s.right == right {
			return at
		}
	}
}

func (e *expressions) grow() {
	e.table = make([]value, 4*len(e.table))
	for i, s := range e.sums {
		e.table[e.find(s.left, s.right)] = value(e.ranks*e.chunks + 1 + i)
	}
}

// complete reports whether v has every rank's value exactly once.
func (e *expressions) complete(v value) bool {
	e.walk++
	count, repeated := e.visit(v, 0)
	return !repeated && count == e.ranks
}

// visit counts the leaves under v that this walk had not met, and stops at the
// first that it had.
func (e *expressions) visit(v value, count int) (int, bool) {
	for !e.isLeaf(v) {
		s := e.sum(v)
		var repeated bool
		// The deeper side of a chain is nearly always the sum made earlier;
		// looping over it keeps the recursion flat.
		deep, flat := s.left, s.right
		if s.right > s.left && !e.isLeaf(s.right) {
			deep, flat = s.right, s.left
		}
		if count, repeated = e.visit(flat, count); repeated {
			return count, true
		}
		v = deep
	}
	rank, _ := e.leafOf(v)
	if e.seen[rank] == e.walk {
		return count, true
	}
	e.seen[rank] = e.walk
	return count + 1, false
}

// why says what is wrong with a value that is not complete.
func (e *expressions) why(v value) string {
	if s, rank, ok := e.firstRepeat(v); ok {
		return fmt.Sprintf("counts rank %d twice, since move %d of round %d", rank, s.move, s.round)
	}
	e.walk++
	e.visit(v, 0)
	var missing []string
	for r, walk := range e.seen {
		if walk != e.walk {
			missing = append(missing, fmt.Sprint(r))
		}
	}
	if len(missing) > 8 {
		missing = append(missing[:8], "...")
	}
	return "lacks rank " + strings.Join(missing, ", ")
}

// firstRepeat finds the earliest sum in v whose sides share a rank. Its sides
// share none of their own, so its tree is small, whatever v's is.
func (e *expressions) firstRepeat(v value) (sum, int, bool) {
	inside := map[value]bool{}
	e.collect(v, inside)
	for at, s := range e.sums {
		part := value(e.ranks*e.chunks + 1 + at)
		e.walk++
		if !inside[part] {
			continue
		}
		if _, repeated := e.visit(part, 0); repeated {
			return s, e.repeatedRank(part), true
		}
	}
	return sum{}, 0, false
}

// collect adds v and every sum in it to inside.
func (e *expressions) collect(v value, inside map[value]bool) {
	if e.isLeaf(v) || inside[v] {
		return
	}
	inside[v] = true
	e.collect(e.sum(v).left, inside)
	e.collect(e.sum(v).right, inside)
}

func (e *expressions) repeatedRank(v value) int {
	counts := map[int]int{}
	var walk func(value)
	walk = func(v value) {
		if e.isLeaf(v) {
			rank, _ := e.leafOf(v)
			counts[rank]++
			return
		}
		walk(e.sum(v).left)
		walk(e.sum(v).right)
	}
	walk(v)
	for r := range e.ranks {
		if counts[r] > 1 {
			return r
		}
	}
	return -1
}

// text prints v, such as ((1+2)+0) for a chunk's sum over ranks.
func (e *expressions) text(v value) string {
	switch {
	case v == nothing:
		return "nothing"
	case e.isLeaf(v):
		rank, chunk := e.leafOf(v)
		return fmt.Sprintf("rank %d's chunk %d", rank, chunk)
	}
	var b strings.Builder
	e.write(&b, v)
	return fmt.Sprintf("%s of chunk %d", b.String(), e.chunk(v))
}

func (e *expressions) write(b *strings.Builder, v value) {
	if b.Len() > 200 {
		return
	}
	if e.isLeaf(v) {
		rank, _ := e.leafOf(v)
		fmt.Fprint(b, rank)
		return
	}
	b.WriteByte('(')
	e.write(b, e.sum(v).left)
	b.WriteByte('+')
	e.write(b, e.sum(v).right)
	b.WriteByte(')')
}
