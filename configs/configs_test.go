package configs_test

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/configs"
	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// TestEveryConfigurationLoads: each file, from the binary, describes a model
// that can be built for data that is embedded or made up.
func TestEveryConfigurationLoads(t *testing.T) {
	t.Chdir(t.TempDir())
	names, err := fs.Glob(configs.FS, "*.yaml")
	require.NoError(t, err)
	bench, err := fs.Glob(configs.FS, "bench/*.yaml")
	require.NoError(t, err)
	names = append(names, bench...)
	require.Subset(t, names, []string{"resnet.yaml", "resnet18.yaml", "resnet50.yaml", "resnet152.yaml", "mlp.yaml", "cnn.yaml"})
	for _, name := range names {
		c, err := config.Load(name, config.Sources{Embedded: configs.FS})
		require.NoError(t, err, name)
		columns, err := config.Columns(c, c.Launch.NProc.Low)
		require.NoError(t, err, name)
		micro, err := config.Batches(c, columns)
		require.NoError(t, err, name)
		require.LessOrEqual(t, micro*columns, c.Data.Batch, "%s: a rank without a micro-batch", name)
		require.Empty(t, c.Data.Path, name)
		shape, known := map[string]data.Shape{
			"fashion-mnist":  {Channels: 1, Height: 28, Width: 28, Classes: 10},
			"synthetic":      {Channels: c.Data.Channels, Height: c.Data.Height, Width: c.Data.Width, Classes: c.Data.Classes},
			"bible":          {Vocabulary: 256, Context: 128},
			"synthetic-text": {Vocabulary: c.Data.Vocabulary, Context: c.Model.Context},
		}[c.Data.Name]
		require.True(t, known, "%s: data that are neither embedded nor made up", name)
		_, err = models.New(c.Network(shape))
		require.NoError(t, err, name)
	}
}

func TestResnetIsWhatTheReadmeSays(t *testing.T) {
	c, err := config.Load("resnet.yaml", config.Sources{Embedded: configs.FS})
	require.NoError(t, err)
	require.Equal(t, "resnet20", c.Model.Name)
	require.Equal(t, 2, c.Launch.NProc.Low)
	require.Equal(t, "nesterov", c.Optim.Name)
	require.Equal(t, 0.1, c.Optim.LR)
	require.Equal(t, 5, c.Train.Epochs)
}

func TestResnetInMixedPrecision(t *testing.T) {
	c, err := config.Load("resnet-amp.yaml", config.Sources{Embedded: configs.FS})
	require.NoError(t, err)
	require.Equal(t, "resnet20", c.Model.Name)
	require.NotNil(t, c.AMP.Settings().Scaler())
	require.Equal(t, 65536.0, c.AMP.Settings().Scaler().Scale())
}

// TestBenchConfigurationsSetNothing: what they give beside the job's shape,
// length and optimizer is what comes without them.
func TestBenchConfigurationsSetNothing(t *testing.T) {
	names, err := fs.Glob(configs.FS, "bench/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		c, err := config.Load(name, config.Sources{Embedded: configs.FS})
		require.NoError(t, err, name)
		usual := config.Default()
		c.Train.Steps, c.Train.EvalEvery = usual.Train.Steps, usual.Train.EvalEvery
		require.Equal(t, []any{usual.Train, usual.Parallel, usual.Fusion, usual.AMP, usual.Collective, usual.Compute, usual.Launch, usual.Checkpoint, usual.Observe},
			[]any{c.Train, c.Parallel, c.Fusion, c.AMP, c.Collective, c.Compute, c.Launch, c.Checkpoint, c.Observe}, name)
		require.Equal(t, "none", c.Model.Recompute, name)
		require.Equal(t, 1, c.Data.Workers, name)
	}
}
