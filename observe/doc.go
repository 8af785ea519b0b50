// Package observe records what a rank does, at almost no cost: spans of
// computation, of collective calls, of waiting and of data loading, in a ring
// of fixed size that one atomic addition reserves a place in. Libraries below
// take a *Recorder and record; nil records nothing. What becomes of the events
// is the business of the sub-packages (trace, metrics) and of the trainer.
package observe
