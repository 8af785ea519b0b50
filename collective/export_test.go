package collective

import "github.com/gradfusion/gradfusion/collective/plan"

// UsePlan makes g run calls of c's shape by a plan that is in no list.
func (g *Group) UsePlan(c Call, p plan.Plan) error {
	prog, err := g.compilePlan(&c, "of a test", p)
	g.executor.programs[shapeOf(&c)] = prog
	return err
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
