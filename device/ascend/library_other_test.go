//go:build !ascend

package ascend

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWithoutTheTag(t *testing.T) {
	_, err := Load(Config{})
	if supported {
		require.EqualError(t, err, "this binary was built without Ascend; build it with: go build -tags ascend ./cmd/train")
	} else {
		require.Error(t, err)
	}
}
