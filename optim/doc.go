// Package optim holds optimizers, which update flat segments of parameters in
// one pass, learning-rate schedules, parameter groups and the norm that
// clipping needs. It knows nothing of ranks: package parallel hands it summed
// gradients.
package optim
