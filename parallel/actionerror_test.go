package parallel

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An error that says its step is not told to be of that step again.
func TestActionErrorSaysTheStepOnce(t *testing.T) {
	lost := errors.New("peer 1: it is gone")
	for want, e := range map[string]*ActionError{
		"step 3, Wait: peer 1: it is gone":           {Step: 3, Stage: -1, Micro: -1, Action: "Wait", Err: lost},
		"step 3, stage 0, Arm: peer 1: it is gone":   {Step: 3, Stage: 0, Micro: -1, Action: "Arm", Err: lost},
		"evaluation, stage 1, F of micro-batch 2: ":  {Stage: 1, Micro: 2, Action: "F", Err: errors.New("")},
		"Wait: step 3, rank 2: peer 1: it is gone":   {Step: 3, Stage: -1, Micro: -1, Action: "Wait", Err: &RankError{Step: 3, Rank: 2, Err: lost}},
		"Wait: the loss of step 3 is +Inf, first in": {Step: 3, Stage: -1, Micro: -1, Action: "Wait", Err: &LossError{Step: 3, Loss: math.Inf(1)}},
	} {
		require.True(t, strings.HasPrefix(e.Error(), want), "%v", e)
	}
}
