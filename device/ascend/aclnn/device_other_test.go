//go:build !ascend

package aclnn

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device/ascend"
	"github.com/gradfusion/gradfusion/device/naive"
)

func TestWithoutTheTag(t *testing.T) {
	_, err := New(Config{Device: &ascend.Device{}, Host: naive.New()})
	require.ErrorIs(t, err, ascend.ErrNotBuilt)
}
