package launch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The last words of a worker of a long pipeline come with a line for each rank.
func TestLastLinesHoldAPicture(t *testing.T) {
	l, err := openLog("", 1)
	require.NoError(t, err)
	defer l.file.Close()
	fmt.Fprintln(l.file, strings.Repeat("a step\n", 2000)+"train: what happened")
	for rank := range 64 {
		fmt.Fprintf(l.file, "rank %d %s\n", rank, strings.Repeat(" 10RecvF10", 17))
	}
	lines := l.lastLines()
	require.Equal(t, "train: what happened", lines[len(lines)-65])

	fmt.Fprintln(l.file, "panic: a crash\n"+strings.Repeat("goroutine\n", 100))
	lines = l.lastLines()
	require.Equal(t, "panic: a crash", lines[0])
	require.Len(t, lines, crashLines)
}
