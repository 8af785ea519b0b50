package collective

import "github.com/gradfusion/gradfusion/collective/plan"

// UsePlan makes g run calls of c's shape by a plan that is in no list.
func (g *Group) UsePlan(c Call, p plan.Plan) error {
	prog, err := g.compilePlan(&c, "of a test", p)
	g.executor.programs[shapeOf(&c)] = prog
	return err
}

// Memory returns how many elements of scratch memory a call needs and how many
// elements it copies beside the plan's moves.
func (g *Group) Memory(c Call) (scratch, copied int, err error) {
	prog, err := g.compile(&c)
	if err != nil {
		return 0, 0, err
	}
	for _, a := range prog.actions {
		if a.kind == copyAction {
			copied += a.at.size()
		}
	}
	for _, pair := range prog.after {
		copied += pair[0].size()
	}
	return prog.scratch, copied, nil
}

// Blame has the running call know that whom it waits for waits for peer.
func (g *Group) Blame(sequence uint64, peer int) { g.executor.guard.blame(sequence, peer) }

// IsNotice reports whether messages with a tag are notices, which ranks send each
// other where they wait long.
func IsNotice(t Tag) bool { return t%channels == noticeChannel }

// Internals under test.
var (
	Widen  = widen
	Narrow = narrow
	Plain  = plainReducer{}
)

// DecodeHeader returns a header's text.
func DecodeHeader(b []byte) (string, bool) {
	h, ok := decodeHeader(b)
	return h.String(), ok
}
