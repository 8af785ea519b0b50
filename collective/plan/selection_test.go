package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective/plan"
)

func TestSelection(t *testing.T) {
	const ring, cheap = "ring", "auto"
	w := plan.World{Ranks: 6}
	for text, rows := range map[string][]struct {
		kind  plan.Kind
		bytes int
		want  string
	}{
		"":     {{plan.AllReduce, 1 << 20, cheap}},
		"auto": {{plan.AllReduce, 1 << 20, cheap}},
		"ring": {{plan.AllReduce, 0, ring}, {plan.AllReduce, 1 << 40, ring}, {plan.Broadcast, 5, ring}, {plan.Barrier, 0, cheap}},
		"tree:64KiB,ring": {
			{plan.AllReduce, 0, "tree"}, {plan.AllReduce, 64 << 10, "tree"}, {plan.AllReduce, 64<<10 + 1, ring},
			{plan.AllGather, 64, cheap}, {plan.AllGather, 1 << 20, ring},
		},
		" allreduce = tree/8 : 1 MB , auto : 1GB,ring ; broadcast=naive; direct ": {
			{plan.AllReduce, 1e6, "tree/8"}, {plan.AllReduce, 1e6 + 1, cheap}, {plan.AllReduce, 1e9 + 1, ring},
			{plan.Broadcast, 1e9, "naive"}, {plan.AllGather, 1, "direct"},
		},
	} {
		s, err := plan.ParseSelection(text)
		require.NoError(t, err, text)
		for _, row := range rows {
			want := row.want
			if want == cheap {
				want = plan.Choose(row.kind, w, row.bytes, plan.Links{}).Name
			}
			require.Equal(t, want, s.Choose(row.kind, w, row.bytes, plan.Links{}).Name, "%q: %v of %d", text, row.kind, row.bytes)
		}
	}
	s, err := plan.ParseSelection(" allreduce = tree/8 : 1 MB , auto : 1GB,ring ; broadcast=naive; direct ")
	require.NoError(t, err)
	require.Equal(t, "all-reduce=tree/8:1MB,auto:1GB,ring;broadcast=naive;direct", s.String())
	require.Equal(t, "auto", plan.Selection{}.String())
}

func TestSelectionErrors(t *testing.T) {
	for text, want := range map[string]string{
		"rign":                              `unknown algorithm "rign"; did you mean ring?`,
		"trees/4":                           "did you mean tree?",
		"magic":                             "known: auto naive halving-doubling",
		"":                                  "",
		"ring;;ring":                        `unknown algorithm ""`,
		"tree,ring":                         "all algorithms but the last need a size",
		"tree:64KiB":                        "all algorithms but the last need a size",
		"tree:64,ring":                      `"64" is no size`,
		"tree:-1KiB,ring":                   "is no size",
		"tree:99999999999GiB,ring":          "is no size",
		"tree:1MiB,ring:1KiB,direct":        "sizes must rise",
		"ring;tree":                         "a second list of algorithms",
		"broadcast=tree;broadcast=ring":     "a second list of algorithms",
		"alreduce=ring":                     `unknown collective operation "alreduce"; did you mean all-reduce?`,
		"barrier=ring":                      "algorithm ring has no barrier",
		"all-to-all=bruck/2":                "algorithm bruck/2 has no all-to-all",
		"tree/0":                            "segments are a number from 1",
		"tree/many":                         "segments are a number from 1",
		"tree/1000000":                      "segments are a number from 1",
		"allreduce=ring:1KiB,rin:2KiB,tree": "did you mean ring?",
	} {
		_, err := plan.ParseSelection(text)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want, "%q", text)
	}
}

func FuzzParseSelection(f *testing.F) {
	f.Add("allreduce=tree/8:64KiB,auto:1GB,ring;broadcast=naive;direct")
	f.Add(" : , ; = / ")
	f.Add("tree:0B,ring")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := plan.ParseSelection(text)
		if err != nil {
			return
		}
		again, err := plan.ParseSelection(s.String())
		require.NoError(t, err)
		require.Equal(t, s.String(), again.String())
		for _, bytes := range []int{0, 1 << 20} {
			require.True(t, s.Choose(plan.AllReduce, plan.World{Ranks: 3}, bytes, plan.Links{}).Does(plan.AllReduce))
		}
	})
}
