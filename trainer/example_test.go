package trainer_test

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/configs"
	"github.com/gradfusion/gradfusion/observe/metrics"
	"github.com/gradfusion/gradfusion/trainer"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// trainBriefly trains on one rank as a configuration of the binary says, with
// some keys set otherwise. Without comm the rank is alone.
func trainBriefly(ctx context.Context, comm collective.Comm) (*metrics.Summary, error) {
	cfg, err := config.Load("mlp.yaml", config.Sources{
		Embedded: configs.FS,
		Set:      []string{"data.name=digits", "train.steps=100", "optim.lr=0.01", "train.deterministic=world"},
	})
	if err != nil {
		return nil, err
	}
	return trainer.Run(ctx, trainer.Job{Config: cfg, Comm: comm})
}

// One rank, then two of one process: the same model to the bit.
func Example() {
	alone, err := trainBriefly(context.Background(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var summaries [2]*metrics.Summary
	var ranks errgroup.Group
	for rank, transport := range inproc.New(2) {
		ranks.Go(func() (err error) {
			comm := collective.NewGroup(transport, collective.GroupConfig{Name: "world"})
			defer comm.Close()
			summaries[rank], err = trainBriefly(context.Background(), comm)
			return err
		})
	}
	if err := ranks.Wait(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("test accuracy above 0.85:", *alone.EvalAccuracy > 0.85)
	fmt.Println("equal to the bit:", summaries[0].StateSHA256 == alone.StateSHA256)
	// Output:
	// test accuracy above 0.85: true
	// equal to the bit: true
}
