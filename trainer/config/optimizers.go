package config

// fillOptim puts in the defaults that an optimizer or a schedule has of its own,
// where nothing was given: those of PyTorch, and of LAMB's paper. It also
// refuses what an optimizer cannot have.
func (c *Config) fillOptim() error {
	usual, o := Default().Optim, &c.Optim
	for _, row := range []struct {
		key, chosen, name string
		value             *float64
		usual, own        float64
	}{
		{"optim.momentum", o.Name, "rmsprop", &o.Momentum, usual.Momentum, 0},
		{"optim.epsilon", o.Name, "adagrad", &o.Epsilon, usual.Epsilon, 1e-10},
		{"optim.epsilon", o.Name, "lamb", &o.Epsilon, usual.Epsilon, 1e-6},
		{"optim.schedule.warmup", o.Schedule.Name, "onecycle", &o.Schedule.Warmup, usual.Schedule.Warmup, 0.3},
	} {
		if _, given := c.positions[row.key]; !given && row.chosen == row.name && *row.value == row.usual {
			*row.value = row.own
		}
	}
	if o.Name == "lars" && o.Momentum == 0 {
		return c.Errorf("optim.momentum", "optim.momentum is 0; lars wants it above 0")
	}
	return nil
}
