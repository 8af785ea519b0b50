package schedule

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCSVRoundTrip(t *testing.T) {
	for _, s := range []Schedule{OneStage(0), GPipe(3, 4), {{}, {{Kind: Wait}}, {}}} {
		var b bytes.Buffer
		require.NoError(t, s.WriteCSV(&b))
		got, err := ReadCSV(&b)
		require.NoError(t, err)
		require.Equal(t, s, got)
	}
}

func TestCSVByHand(t *testing.T) {
	s, err := ReadCSV(strings.NewReader("# two ranks\n0F0, ,  0B0 ,\n,1F0,1B0\n"))
	require.NoError(t, err)
	require.Equal(t, "0F0 0B0\n1F0 1B0\n", s.String())
	require.NoError(t, s.Check(2, 1))
}

func TestCSVErrorsNameThePlace(t *testing.T) {
	_, err := ReadCSV(strings.NewReader("0F0,0B0\n1F0,1X0\n"))
	require.ErrorContains(t, err, `schedule: line 2, column 5: "1X0" is no action`)
	_, err = ReadCSV(strings.NewReader("0F0,\"0B0\n"))
	require.ErrorContains(t, err, "schedule: parse error on line 1, column 10")
}

func FuzzReadCSV(f *testing.F) {
	f.Add("0F0,0B0\n1F0,,1B0\n")
	f.Add("\"\"\n# comment\n0Arm,Wait\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ReadCSV(strings.NewReader(text))
		if err != nil {
			return
		}
		var b bytes.Buffer
		require.NoError(t, s.WriteCSV(&b))
		again, err := ReadCSV(&b)
		require.NoError(t, err)
		require.Equal(t, s, again)
		if s.Check(2, 2) == nil {
			_, err := s.Simulate(Costs{})
			require.NoError(t, err)
		}
	})
}

func ExampleOneForwardOneBackward() {
	s := OneForwardOneBackward(3, 4)
	if err := s.Check(3, 4); err != nil {
		fmt.Println(err)
		return
	}
	timing, err := s.Simulate(Costs{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(s.Timeline(timing, 1))
	// Output:
	// rank 0   0F0 0F1 0F2 .   .   .   .   0B0---- 0F3 0B1---- .   0B2---- .   0B3----
	// rank 1   .   1F0 1F1 .   .   1B0---- 1F2 1B1---- 1F3 1B2---- .   1B3---- .   .
	// rank 2   .   .   2F0 2B0---- 2F1 2B1---- 2F2 2B2---- 2F3 2B3---- .   .   .   .
}
