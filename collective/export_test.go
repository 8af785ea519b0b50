package collective

import "github.com/gradfusion/gradfusion/collective/plan"

// UsePlan makes g run calls of c's shape, which are in place, by a plan that is
// in no list.
func (g *Group) UsePlan(c Call, p plan.Plan) {
	prog := &program{header: g.headerOf(&c)}
	prog.header.algorithm = "of a test"
	g.add(prog, p, within(inMemory, plan.Cut(c.In.Len, p.Chunks)))
	g.executor.programs[shapeOf(&c)] = prog
}

// Internals under test.
var (
	Widen  = widen
	Narrow = narrow
	Divide = divide
	Plain  = plainReducer{}
)

// DecodeHeader returns a header's text.
func DecodeHeader(b []byte) (string, bool) {
	h, ok := decodeHeader(b)
	return h.String(), ok
}
