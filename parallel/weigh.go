package parallel

// weigh makes the gradient that of Outcome.Loss where not every target of the
// step counted: losses are seeded with one over all targets, and how many are
// left out, as data.Ignore is, is known when the last micro-batch has been read.
// With LocalSGD a rank's gradient is that of its own targets.
func (g *GradFusion) weigh() {
	expected, counted := g.leaves.samples, g.outcome.Counted
	if g.cfg.LocalSGD > 0 {
		expected, counted = g.local.samples, 0
		for micro := g.leaves.lo; micro < g.leaves.hi; micro++ {
			counted += int(g.leaves.row(micro)[2])
		}
	}
	expected *= max(g.cfg.Targets, 1)
	g.deferred.weight = 1
	if counted == 0 || counted == expected {
		return
	}
	g.deferred.weight = float32(float64(expected) / float64(counted))
	if g.cfg.Defer {
		return // the sums are to come
	}
	for _, s := range g.stages {
		for _, b := range s.reducer.buckets {
			g.cfg.Device.Kernels().Scale(b.grad, b.grad, g.deferred.weight)
		}
	}
}
