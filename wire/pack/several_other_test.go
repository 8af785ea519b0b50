//go:build !amd64

package pack

// several are the loops that this processor has.
func several() []kernels { return []kernels{{}} }
