//go:build extblas && (linux || darwin)

package extblas

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// files returns the names under which a library is looked for.
func files(name string) []string {
	switch {
	case name == "openblas" && runtime.GOOS == "darwin":
		return []string{"libopenblas.dylib", "/opt/homebrew/opt/openblas/lib/libopenblas.dylib"}
	case name == "openblas":
		return []string{"libopenblas.so.0", "libopenblas.so"}
	case runtime.GOOS == "darwin":
		return []string{"libdnnl.dylib", "/opt/homebrew/opt/onednn/lib/libdnnl.dylib"}
	}
	return []string{"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so"}
}

// load opens the first file that is there, or path, and binds its product.
func load(name, path string, threads int) (library, error) {
	tried := files(name)
	if path != "" {
		tried = []string{path}
	}
	var reasons []error
	for _, file := range tried {
		handle, err := purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err != nil {
			reasons = append(reasons, err)
			continue
		}
		multiply, err := bind(name, handle, threads)
		if err != nil {
			return library{}, fmt.Errorf("%s has no product for us: %w", file, err)
		}
		return library{name: name, multiply: multiply}, nil
	}
	// The loader names the file in each reason.
	return library{}, fmt.Errorf("no %s on this machine; tried %s: %w", name, strings.Join(tried, ", "), joined(reasons))
}

// joined puts errors on one line.
func joined(all []error) error {
	texts := make([]string, len(all))
	for i, err := range all {
		texts[i] = err.Error()
	}
	return errors.New(strings.Join(texts, "; "))
}

func bind(name string, handle uintptr, threads int) (func(product), error) {
	if name == "openblas" {
		return bindOpenBLAS(handle, threads)
	}
	return bindOneDNN(handle, threads)
}

// The constants of the C interface to BLAS.
const (
	rowMajor   = 101
	asStored   = 111
	transposed = 112
)

func bindOpenBLAS(handle uintptr, threads int) (func(product), error) {
	at, err := purego.Dlsym(handle, "cblas_sgemm")
	if err != nil {
		return nil, err
	}
	setAt, err := purego.Dlsym(handle, "openblas_set_num_threads")
	if err != nil {
		return nil, err
	}
	var setThreads func(n int32)
	purego.RegisterFunc(&setThreads, setAt)
	setThreads(int32(threads))
	var sgemm func(order, transA, transB, m, n, k int32, alpha float32, a unsafe.Pointer, lda int32, b unsafe.Pointer, ldb int32, beta float32, c unsafe.Pointer, ldc int32)
	purego.RegisterFunc(&sgemm, at)
	trans := func(t bool) int32 {
		if t {
			return transposed
		}
		return asStored
	}
	return func(p product) {
		sgemm(rowMajor, trans(p.transA), trans(p.transB), narrow(p.m), narrow(p.n), narrow(p.k),
			1, p.a, narrow(p.lda), p.b, narrow(p.ldb), p.beta(), p.c, narrow(p.ldc))
	}, nil
}

func bindOneDNN(handle uintptr, threads int) (func(product), error) {
	at, err := purego.Dlsym(handle, "dnnl_sgemm")
	if err != nil {
		return nil, err
	}
	var sgemm func(transA, transB int8, m, n, k int64, alpha float32, a unsafe.Pointer, lda int64, b unsafe.Pointer, ldb int64, beta float32, c unsafe.Pointer, ldc int64) int32
	purego.RegisterFunc(&sgemm, at)
	// OpenMP keeps the number of threads for each thread of the system. A library
	// built without it, with threads of its own, is left as it is.
	setThreads := func(int32) {}
	if at, err := purego.Dlsym(handle, "omp_set_num_threads"); err == nil {
		purego.RegisterFunc(&setThreads, at)
	}
	trans := func(t bool) int8 {
		if t {
			return 'T'
		}
		return 'N'
	}
	return func(p product) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		setThreads(int32(threads))
		status := sgemm(trans(p.transA), trans(p.transB), int64(p.m), int64(p.n), int64(p.k),
			1, p.a, int64(p.lda), p.b, int64(p.ldb), p.beta(), p.c, int64(p.ldc))
		if status != 0 {
			panic(fmt.Sprintf("extblas: dnnl_sgemm of %d x %d x %d returned status %d", p.m, p.n, p.k, status))
		}
	}, nil
}

// beta is what C is multiplied by first.
func (p product) beta() float32 {
	if p.accumulate {
		return 1
	}
	return 0
}

// narrow converts a dimension to the library's integers.
func narrow(n int) int32 {
	if n > math.MaxInt32 {
		panic(fmt.Sprintf("extblas: a dimension of %d does not fit the library's 32 bits", n))
	}
	return int32(n)
}
