package schedule

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOneStage(t *testing.T) {
	for micros, want := range []string{
		"0Arm Wait\n",
		"0F0 0Arm 0B0 Wait\n",
		"0F0 0B0 0F1 0Arm 0B1 Wait\n",
		"0F0 0B0 0F1 0B1 0F2 0Arm 0B2 Wait\n",
	} {
		require.Equal(t, want, OneStage(micros).String())
	}
}

func TestParseActionSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "is no action: want stage, kind and micro-batch",
		"2G0":                    "is no action: want stage, kind and micro-batch",
		"F0":                     "F is written like 0F0",
		"2F":                     "F is written like 0F0",
		"2Arm0":                  "Arm is written like 0Arm",
		"0Wait":                  "Wait is written like Wait",
		"9999999F0":              "stage: 9999999 is above 1048576",
		"0F99999999999999999999": "micro-batch: 99999999999999999999 is above 1048576",
	} {
		_, err := ParseAction(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestParseNamesTheLine(t *testing.T) {
	_, err := Parse("0F0 0B0\n\n1F0 oops\n")
	require.EqualError(t, err, `schedule: line 3: "oops" is no action: want stage, kind and micro-batch, such as 2F0 (kinds: F B I W Arm Wait SendF RecvF SendB RecvB)`)
}

func FuzzParse(f *testing.F) {
	f.Add(OneStage(3).String())
	f.Add("0F0 1I2 1W2\n-\n2SendF0 3RecvB1 Wait")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(s.String())
		require.NoError(t, err)
		require.Equal(t, s, again)
	})
}
