package pack

// several are the loops that this processor has, the plain ones first.
func several() []kernels {
	all := []kernels{{}}
	best := chosenKernels()
	if best.avx2 {
		all = append(all, kernels{avx2: true})
	}
	if best.avx512 {
		all = append(all, best)
	}
	return all
}
