// Package parallel trains one model on many ranks. GradFusion fuses gradients
// into buckets, sums each over the ranks while the backward pass goes on, and
// runs the optimizer; Executor runs a schedule of forward and backward actions
// over a rank's blocks.
//
// The unit of everything is the micro-batch: a step of N samples is cut in
// ceil(N / micro-batch) of them, dealt in contiguous runs to the ranks. What a
// step computes does not depend on which rank computed which micro-batch, up to
// rounding; with FusionConfig.Deterministic not even rounding differs.
//
// A model may be cut in stages, runs of its blocks that lie on other ranks: a
// Mesh arranges the ranks, Pipeline cuts, and an Executor runs a schedule of
// forward and backward passes, sending values and gradients between the stages
// while it computes. A parameter of two stages has a copy in each (Stage.Tied).
//
// Ranks may share each layer instead, as Partners (nn.Cut): they sum partial
// results during both passes. Whole puts their parts of tensors together.
//
// An optimizer may be sharded over the ranks of a stage (FusionConfig.Shard): each
// updates a part for all, to the same bits. Or ranks train apart for some steps and
// average their parameters (FusionConfig.LocalSGD). Gradients may travel in fewer
// bytes, and what an encoding has lost is sent later (FusionConfig.Wire).
//
// Over slow links a step may end while its sums are on their way, and the next
// forward pass waits for each where it needs it (FusionConfig.Defer).
//
// BatchNorms may take their statistics over ranks (FusionConfig.SyncBatchNorm).
// Gradients of tables may be kept and sent by rows (nn.Param.Sparse). A Hook
// replaces or follows the sum of a bucket. Parameters may be frozen between steps.
// A step that one rank cannot do is the same error on all of them: a *RankError, a
// *LossError, or one that wraps ErrDiffer.
//
// A caller needs a collective.Comm for each stage, blocks whose parameters have
// memory (nn.Materialize), and an optimizer. It then repeats Executor.Step and
// GradFusion.Step; or, with a loop of its own over a model that is not cut: for
// each of Micros a forward pass and Backward, Wait, Step.
//
// The package leaves out loading data and writing checkpoints, which the caller
// does. The schedules, as data, are in parallel/schedule.
package parallel
