// Package trainer runs a whole training job on one rank: model, data, steps,
// evaluation, checkpoints, figures. It is the high road for programs that embed
// training; package parallel is the low road, whose loop a program writes
// itself.
//
//	cfg, err := config.Load("resnet.yaml")
//	...
//	summary, err := trainer.Run(ctx, trainer.Job{Config: cfg})
//
// Every rank of a job calls Run with the same Config and its own Comm; without
// one the job has one rank. Run returns the same summary on all of them. It
// prints nothing: Job.On receives what happens.
package trainer
