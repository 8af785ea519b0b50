package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective/plan"
)

func TestTextReadsBack(t *testing.T) {
	for _, a := range plan.Algorithms() {
		for _, k := range a.Kinds {
			text := a.Plan(k, plan.World{Ranks: 6}, 0).String()
			p, err := plan.Parse(text)
			require.NoError(t, err)
			require.Equal(t, text, p.String())
			require.NoError(t, p.Check(k, 0))
		}
	}
}

func TestParseErrorsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "empty",
		"# only a comment\n":                    "empty",
		"plan 2 ranks":                          "line 1",
		"plan 0 ranks 1 chunks":                 "line 1: 0 ranks",
		"plan 2 ranks 1 chunks\n\n0:0>2:0":      "line 3: move \"0:0>2:0\": no such rank among 2",
		"plan 2 ranks 1 chunks\n0:0>1:0x2":      "no such chunks among 1",
		"plan 2 ranks 1 chunks\n0:0>1:0x0":      "no such chunks",
		"plan 2 ranks 1 chunks\n0:0-1:0":        "from:chunk>to:chunk",
		"plan 2 ranks 1 chunks\n0>1":            "\"0\" is not rank:chunk",
		"plan 2 ranks 1 chunks\n0:a>1:0":        "\"a\" is no number",
		"plan 2 ranks 1 chunks\n0:0>1:99999999": "no number up to",
	} {
		_, err := plan.Parse(text)
		require.ErrorContains(t, err, want, "%q", text)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("plan 2 ranks 2 chunks\n0:1>1:1+ 1:0>0:0+\n-\n0:0>1:0x2")
	f.Add(plan.Ring(plan.AllReduce, 3, 0).String())
	f.Add("plan 1 ranks 1 chunks\n0:0>0:0+++")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := plan.Parse(text)
		if err != nil {
			return
		}
		again, err := plan.Parse(p.String())
		require.NoError(t, err)
		require.Equal(t, p.String(), again.String())
		if p.Ranks*p.Chunks > 1<<12 {
			return
		}
		for _, k := range plan.Kinds() {
			_ = p.Check(k, 0) // an error or nil, never a panic
		}
	})
}
