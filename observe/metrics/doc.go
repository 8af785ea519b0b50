// Package metrics turns a rank's spans into the figures of a run: a line of
// metrics.jsonl for each step and summary.json at the end.
//
// A trainer drains its observe.Recorder into a StepTimes after each step,
// writes a Line, and fills a Summary when it is done. Definitions of the times
// are those of StepTimes. The package gathers nothing from other ranks: figures
// are of the rank whose spans it is given, and what is to be global (samples
// per second, loss, the largest memory) the caller brings.
package metrics
