package main

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/trainer/config"
)

func TestBindingWantsProcessorsForAllThreads(t *testing.T) {
	has := runtime.NumCPU()
	c := config.Default()
	c.Compute.Threads = config.Count(has)
	j := &job{config: c}
	require.NoError(t, j.checkBinding(2, true), "auto does what it can")
	c.Launch.BindCores = config.On
	require.NoError(t, j.checkBinding(1, true))
	require.ErrorContains(t, j.checkBinding(2, true),
		fmt.Sprintf("launch.bind_cores: true: 2 ranks of this host want %d processors each, and it lets them have %d", has, has))
}
