// Package trainer runs a whole training job on one rank: model, data, steps,
// evaluation, checkpoints, figures. It is the high road for programs that embed
// training; package parallel is the low road, whose loop a program writes
// itself.
//
//	cfg, err := config.Load("resnet.yaml", config.Sources{Embedded: configs.FS})
//	...
//	summary, err := trainer.Run(ctx, trainer.Job{Config: cfg})
//
// Every rank of a job calls Run with the same Config and its own Comm; without
// one the job has one rank. Run returns on all of them; hashes and losses of
// the summaries agree, times are each rank's own. It prints nothing: Job.On
// receives what happens. DryRun tells what a training would be; Fits finds mistakes
// before ranks are started for it.
//
// The package leaves out how ranks come to be and find each other (launch,
// collective), signals, and showing anything.
package trainer
