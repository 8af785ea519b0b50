package collective

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/wire"
)

// TestCodedPartsAreEager: no encoded part waits for its receiver, whatever is cut.
func TestCodedPartsAreEager(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	lengths := []int{0, 1, 1_120_690, 1_305_862, 1_931_862, 5_175_585} // parts of these were too long
	for range 100 {
		lengths = append(lengths, random.IntN(20<<20))
	}
	for _, f := range []wire.Format{wire.NewHalf(false), wire.NewBlocks(8), wire.NewBlocks(4), wire.NewTopK(.01), wire.NewTopK(.35), wire.NewTopK(1)} {
		for _, ranks := range []int{2, 3, 8} {
			for columns := 1; columns <= 3; columns++ {
				for _, length := range lengths {
					c := coding{assembly: &assembly{program: &program{}}, codec: &wire.Codec{Format: f}, columns: columns, sites: make([][]int, ranks)}
					c.cut(length)
					require.LessOrEqual(t, c.most, smallLimit, "%d values in %s, %d sites, %d columns, seed %d", length, f.Name(), ranks, columns, seed)
				}
			}
		}
	}
}
