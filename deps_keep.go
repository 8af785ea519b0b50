//go:build keepdeps

package main

import (
	_ "github.com/goccy/go-yaml"
	_ "github.com/stretchr/testify/require"
	_ "github.com/vbauerster/mpb/v8"
	_ "go.uber.org/goleak"
	_ "go.uber.org/zap"
	_ "go4.org/unsafe/assume-no-moving-gc"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/sys/unix"
	_ "gorgonia.org/gorgonia"
	_ "gorgonia.org/tensor"
)

func main() {}
