package main

import "context"

func (j *job) decide(ctx context.Context) error {
	world := j.config.Launch.NProc.Low
	if err := j.fits(world); err != nil {
		return err
	}
	return j.here(ctx, world)
}
