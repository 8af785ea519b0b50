package config

// Columns returns the data-parallel columns of a world of ranks: what pipeline
// and tensor leave of it.
func Columns(c *Config, world int) (int, error) {
	model := c.Parallel.Pipeline * c.Parallel.Tensor
	if world < 1 || world%model != 0 {
		key := "parallel.pipeline"
		if c.Parallel.Pipeline == 1 {
			key = "parallel.tensor"
		}
		return 0, c.Errorf(key, "%s cannot be divided into parallel.pipeline x parallel.tensor = %d x %d",
			Plural(world, "rank"), c.Parallel.Pipeline, c.Parallel.Tensor)
	}
	columns := world / model
	if want := c.Parallel.Data.Or(columns); want != columns {
		return 0, c.Errorf("parallel.data", "parallel.data is %d, but %s in %d x %d stages and tensor parts make %s; leave it at auto, or start %s",
			want, Plural(world, "rank"), c.Parallel.Pipeline, c.Parallel.Tensor, Plural(columns, "column"), Plural(want*model, "rank"))
	}
	return columns, nil
}

// Batches returns the samples of a micro-batch for a number of data-parallel
// columns: train.micro_batch, or batch / (columns x train.accumulate), or by
// default batch / columns rounded up, min(32, batch) under deterministic:
// world. A step has ceil(batch / micro) of them.
func Batches(c *Config, columns int) (micro int, err error) {
	batch, given, accumulate := c.Data.Batch, int(c.Train.MicroBatch), int(c.Train.Accumulate)
	switch {
	case given > batch:
		return 0, c.Errorf("train.micro_batch", "train.micro_batch is %d, but a step has only data.batch = %d samples", given, batch)
	case accumulate > 0 && batch%(columns*accumulate) != 0:
		return 0, c.Errorf("train.accumulate", "train.accumulate = %d cannot be had: data.batch = %d is no multiple of %s x %d; "+
			"change one of them, or write train.micro_batch, which need not divide the batch", accumulate, batch, Plural(columns, "column"), accumulate)
	case accumulate > 0 && given > 0 && given*columns*accumulate != batch:
		return 0, c.Errorf("train.accumulate", "train.micro_batch = %d contradicts train.accumulate = %d: data.batch = %d over %s in %s makes micro-batches of %d; give one of the two",
			given, accumulate, batch, Plural(columns, "column"), Plural(accumulate, "piece"), batch/(columns*accumulate))
	case given > 0:
		return given, nil
	case accumulate > 0:
		return batch / (columns * accumulate), nil
	case c.Train.Deterministic == "world":
		return min(32, batch), nil
	}
	return (batch + columns - 1) / columns, nil
}
