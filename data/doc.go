// Package data turns labelled images, or the windows of a text, into the
// micro-batches of a training run.
//
// Open reads a named set into memory (Names lists them). A Sampler says which
// samples a global step takes: its order is a pure function of (seed, epoch)
// and knows nothing of ranks. Parts deals a step's micro-batches to ranks in
// contiguous runs, a Batcher decodes, augments and normalises images, Windows
// cuts a text into tokens and the tokens that follow them, and a Loader does
// that ahead of time on its own goroutines.
//
// The caller chooses batch and micro-batch, calls Next and Release in turn and
// closes the Loader. What a micro-batch holds depends on seed, step and
// micro-batch index only; never on the number of ranks, workers or on timing,
// so a run that is resumed at a step gets the same bits.
//
// The package leaves out device memory (a Batch is host memory that a device
// buffer may wrap), tokens longer than a character, and sets that do not fit
// into memory.
package data
