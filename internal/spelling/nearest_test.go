package spelling

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNearest(t *testing.T) {
	names := []string{"resnet20", "resnet200", "mlp", "nesterov", "micro_batch"}
	for s, want := range map[string]string{
		"resnet21": "resnet20", "ResNet-20": "resnet20", "mpl": "mlp", "nestrov": "nesterov", "microbatch": "micro_batch", "transformer": "", "": "",
	} {
		require.Equal(t, want, Nearest(s, names), s)
	}
	require.Equal(t, "; did you mean mlp?", DidYouMean("mpl", names))
	require.Empty(t, DidYouMean("transformer", names))
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "ab", 1}, {"abc", "xbc", 1}, {"kitten", "sitting", 3}, {"a", strings.Repeat("b", 101), 101}} {
		require.Equal(t, c.want, Distance(c.a, c.b), "%s %s", c.a, c.b)
		require.Equal(t, c.want, Distance(c.b, c.a), "%s %s", c.b, c.a)
	}
}
