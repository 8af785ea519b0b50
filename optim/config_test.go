package optim

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/nn"
)

func TestNewRefuses(t *testing.T) {
	nan := float32(math.NaN())
	minus := float32(-1)
	for want, c := range map[string]Config{
		`optim: unknown optimizer "adma"; did you mean adam? (known: sgd momentum nesterov adam adamw rmsprop adagrad lars lamb)`: {Name: "adma"},
		`optim: unknown optimizer "xyz" (known: sgd momentum nesterov adam adamw rmsprop adagrad lars lamb)`:                      {Name: "xyz"},
		"optim: momentum is 1, want at least 0 and below 1":                                                                       {Momentum: 1},
		"optim: beta2 is 1.5, want at least 0 and below 1":                                                                        {Name: "adam", Beta2: 1.5},
		"optim: weight_decay is NaN, want at least 0 and below +Inf":                                                              {WeightDecay: nan},
		"optim: dampening is 2, want 0 to 1":                                                                                      {Dampening: 2},
		"optim: alpha is 1, want at least 0 and below 1":                                                                          {Name: "rmsprop", Alpha: 1},
		"optim: trust is -1, want at least 0 and below +Inf":                                                                      {Name: "lars", Trust: -1},
		"optim: nesterov has no dampening, but dampening is 0.5":                                                                  {Name: "nesterov", Dampening: 0.5},
		"optim: group 1: lr_factor is -1, want at least 0":                                                                        {Groups: []Rule{{Match: "a", LRFactor: &minus}}},
		`optim: group 1: match is "[", want a pattern of parameter names such as layer1.* or *.bias`:                              {Groups: []Rule{{Match: "["}}},
	} {
		_, err := New(c)
		require.EqualError(t, err, want)
	}
}

func TestNewKnowsItsNames(t *testing.T) {
	for _, name := range append(Names(), "") {
		_, err := New(Config{Name: name})
		require.NoError(t, err, name)
	}
}

func TestGroups(t *testing.T) {
	weight := &nn.Param{Name: "layer1.conv.weight", Decay: true}
	bias := &nn.Param{Name: "head.bias"}
	params := []*nn.Param{weight, bias}
	tenth, none := float32(0.1), float32(0)
	for _, c := range []struct {
		config Config
		want   []Group
	}{
		{Config{WeightDecay: 0.5}, []Group{{1, 0.5}, {1, 0}}},
		{Config{WeightDecay: 0.5, DecayNormsAndBiases: true}, []Group{{1, 0.5}, {1, 0.5}}},
		{Config{WeightDecay: 0.5, Groups: []Rule{{Match: "head.*", LRFactor: &tenth}}}, []Group{{1, 0.5}, {0.1, 0}}},
		{Config{WeightDecay: 0.5, Groups: []Rule{{Match: "*.weight", WeightDecay: &none}, {Match: "*", LRFactor: &none}}}, []Group{{1, 0}, {0, 0}}},
	} {
		got, err := Groups(params, c.config)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	_, err := Groups(params, Config{Groups: []Rule{{Match: "haed.*"}}})
	require.EqualError(t, err, "optim: group 1: no parameter is called haed.*")
	_, err = Groups(params, Config{Groups: []Rule{{Match: "["}}})
	require.ErrorContains(t, err, "optim: group 1: match is")
}
