package configs_test

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/configs"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// TestEveryConfigurationLoads: each file, from the binary, describes a model
// that can be built for data that is embedded or made up.
func TestEveryConfigurationLoads(t *testing.T) {
	t.Chdir(t.TempDir())
	names, err := fs.Glob(configs.FS, "*.yaml")
	require.NoError(t, err)
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
		require.Contains(t, []string{"fashion-mnist", "digits", "synthetic"}, c.Data.Name, name)

		channels, height, width, classes := 1, 28, 28, 10
		if c.Data.Name == "synthetic" {
			channels, height, width, classes = c.Data.Channels, c.Data.Height, c.Data.Width, c.Data.Classes
		}
		_, err = models.New(c.Network(channels, height, width, classes))
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
