package trainer

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAmounts(t *testing.T) {
	for bytes, want := range map[float64]string{
		0: "0 B", 999: "999 B", 999.4: "999 B", 999.5: "0.976 KiB", 1 << 10: "1 KiB", 1000 << 10: "0.977 MiB", 1023 << 10: "0.999 MiB",
		999.9 * (1 << 20): "0.976 GiB", 900 << 30: "900 GiB", 1 << 40: "1 TiB", 1234 << 40: "1.21 PiB",
	} {
		require.Equal(t, want, amount(bytes))
	}
}
