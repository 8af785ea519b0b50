//go:build ascend && linux && (amd64 || arm64)

package aclnn

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/gradfusion/gradfusion/device/ascend"
)

// library is the addresses of the operators' functions, by their names.
type library struct {
	aclCreateTensor, aclDestroyTensor, aclCreateScalar, aclDestroyScalar, aclCreateIntArray, aclDestroyIntArray,
	aclnnMatmulGetWorkspaceSize, aclnnMatmul,
	aclnnAddGetWorkspaceSize, aclnnAdd,
	aclnnCastGetWorkspaceSize, aclnnCast,
	aclnnReduceSumGetWorkspaceSize, aclnnReduceSum uintptr
}

// load finds the functions. Those of tensors are in libnnopbase, which libopapi
// normally brings along.
func load(l *ascend.Library) (*library, error) {
	h, err := l.LoadOther("libopapi.so", "libnnopbase.so")
	if err != nil {
		return nil, fmt.Errorf("the operators of CANN (package ops, or kernels in older releases) are not there: %w", err)
	}
	y := &library{}
	var missing []error
	for v, i := reflect.ValueOf(y).Elem(), 0; i < v.NumField(); i++ {
		at, err := h.Need(v.Type().Field(i).Name)
		missing = append(missing, err)
		*(*uintptr)(v.Field(i).Addr().UnsafePointer()) = at
	}
	return y, errors.Join(missing...)
}
