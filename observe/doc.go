// Package observe records what a rank does, at almost no cost: spans of
// computation, of collective calls, of waiting and of data loading, in a ring
// of fixed size. Libraries below take a *Recorder and record; nil records
// nothing. Whoever runs the steps drains it after each.
//
// The package leaves out what becomes of the spans, which is the business of
// its sub-packages (metrics, trace, tensorboard) and of the trainer.
package observe
