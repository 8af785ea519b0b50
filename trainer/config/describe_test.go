package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDescribeSaysWhatIsNotThereYet(t *testing.T) {
	meanings := map[string]string{}
	for _, s := range Describe() {
		meanings[s.Key] = s.Meaning
	}
	for _, row := range unsupported() {
		require.Contains(t, meanings[row.key], "(not in this version yet)", row.key)
	}
	for _, choice := range choices() {
		if len(choice.have) == len(choice.all) {
			require.NotContains(t, meanings[choice.key], "in this version", choice.key)
			continue
		}
		require.Contains(t, meanings[choice.key], "(not in this version yet: ", choice.key)
	}
	require.NotContains(t, meanings["optim.lr"], "in this version")
}
