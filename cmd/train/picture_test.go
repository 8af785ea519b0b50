package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/parallel"
)

// The picture of a schedule is not broken into a paragraph.
func TestPicturesStayAsTheyAre(t *testing.T) {
	const grid = "         0   1   2\nrank 0   0F0 0B0\n             ^\nrank 1   1F0 1B0\n"
	err := &parallel.ActionError{Step: 3, Stage: 0, Micro: 4, Action: "backward pass", Rank: 0, Grid: grid,
		Err: errors.New("rank 0, group world, call 12 (exchange): peer 1: rank 0 lost rank 2: its process has died")}
	text := paragraph(err)
	require.Equal(t, "train: step 3, stage 0, backward pass of micro-batch 4: rank 0, group world,\n"+
		"call 12 (exchange): peer 1: rank 0 lost rank 2: its process has died\n"+
		"rank 0 of the pipeline was at\n"+grid, text)
	require.Equal(t, "rank 2 was killed. What rank 0 saw of it: step 3, stage 0, backward pass of\n"+
		"micro-batch 4: rank 0, group world, call 12 (exchange): peer 1: rank 0 lost rank\n2: its process has died\n"+
		"rank 0 of the pipeline was at\n"+grid, wrapAbove("rank 2 was killed. What rank 0 saw of it: "+text[len("train: "):]))
	require.Equal(t, "no picture\n", wrapAbove("no\npicture\n"))
}
