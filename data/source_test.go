package data

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEmbeddedSets(t *testing.T) {
	s, err := Open(Config{})
	require.NoError(t, err)
	require.Equal(t, "fashion-mnist", s.Name)
	require.Equal(t, []int{12000, 2000}, []int{s.Train.Len(), s.Test.Len()})
	require.Equal(t, []int{1, 28, 28, 10}, []int{s.Train.Channels, s.Train.Height, s.Train.Width, s.Train.Classes})
	require.Len(t, s.ClassNames, 10)
	// Known of the full training set: mean 0.2860, deviation 0.3530.
	require.InDelta(t, 0.286, s.Normalization.Mean[0], 0.003)
	require.InDelta(t, 0.353, s.Normalization.Std[0], 0.003)

	d, err := Open(Config{Name: "digits"})
	require.NoError(t, err)
	require.Equal(t, []int{1438, 359}, []int{d.Train.Len(), d.Test.Len()})
	for _, part := range []*Images{s.Train, s.Test, d.Train, d.Test} {
		seen := make([]int, 10)
		for _, label := range part.Labels {
			seen[label]++
		}
		for class, n := range seen {
			require.Greater(t, n, part.Len()/20, "class %d", class)
		}
	}
}

func TestFullSetIsFoundOrExplained(t *testing.T) {
	_, err := Open(Config{Name: "fashion-mnist-full", Path: write(t, goodIDX())})
	require.NoError(t, err)
	s, err := Open(Config{Name: "fashion-mnist-full"})
	if err != nil { // this machine may not have Debian's package
		require.ErrorContains(t, err, "install Debian's package dataset-fashion-mnist")
		return
	}
	require.Equal(t, []int{60000, 10000}, []int{s.Train.Len(), s.Test.Len()})
	small, err := Open(Config{})
	require.NoError(t, err)
	require.Equal(t, small.Train.Pixels, s.Train.Pixels[:len(small.Train.Pixels)], "the embedded set is its start")
	require.Equal(t, small.Test.Labels, s.Test.Labels[:2000])
}

func TestSyntheticIsAFunctionOfTheSeed(t *testing.T) {
	sum := func(seed uint64) string {
		s, err := Open(Config{Name: "synthetic", Channels: 2, Height: 3, Width: 5, Classes: 4, TrainSamples: 9, TestSamples: 3, Seed: seed})
		require.NoError(t, err)
		require.Equal(t, []int32{0, 1, 2, 3, 0, 1, 2, 3, 0}, s.Train.Labels)
		require.NotEqual(t, s.Train.Sample(0), s.Test.Sample(0))
		all := sha256.Sum256(append(s.Train.Pixels, s.Test.Pixels...))
		return hex.EncodeToString(all[:8])
	}
	require.Equal(t, "e7b290510109788b", sum(1))
	require.NotEqual(t, sum(1), sum(2))

	// A longer set starts with the shorter one.
	long, err := Open(Config{Name: "synthetic", TrainSamples: 20})
	require.NoError(t, err)
	short, err := Open(Config{Name: "synthetic", TrainSamples: 10})
	require.NoError(t, err)
	require.Equal(t, short.Train.Pixels, long.Train.Pixels[:len(short.Train.Pixels)])
	require.Equal(t, []int{3, 32, 32, 10, 256}, []int{long.Train.Channels, long.Train.Height, long.Train.Width, long.Train.Classes, long.Test.Len()})
}

func TestSyntheticRefusesSizes(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{Channels: -1}, "data.channels: -1 is out of range"},
		{Config{Height: 1 << 20}, "data.height: 1048576 is out of range"},
		{Config{Classes: -3}, "data.classes"},
		{Config{Width: 1 << 16, Height: 1 << 16, Channels: 1 << 16}, "at most 16 GiB"},
		{Config{TrainSamples: -1}, "data.train_samples"},
		{Config{TestSamples: 1 << 40}, "data.test_samples"},
	} {
		c.config.Name = "synthetic"
		_, err := Open(c.config)
		require.ErrorContains(t, err, c.want)
	}
}

func TestNamesDescribeEverySet(t *testing.T) {
	var names []string
	for _, n := range Names() {
		names = append(names, n.Name)
		require.NotEmpty(t, n.About)
	}
	require.Equal(t, "[fashion-mnist fashion-mnist-full digits cifar10 synthetic bible text synthetic-text]", fmt.Sprint(names))
}

func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		if _, err := Open(Config{}); err != nil {
			b.Fatal(err)
		}
	}
}
