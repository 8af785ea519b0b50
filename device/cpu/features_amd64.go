package cpu

func fastKernels() (set *kernelSet, missing string) { return nil, "AVX2 and FMA" }
