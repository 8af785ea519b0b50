// Package trace shows the spans of all ranks in one picture: Write makes the
// Chrome trace JSON that Perfetto and chrome://tracing open, with a process for
// each rank and a lane for its computation and each communicator.
//
// Every rank drains its observe.Recorder and sends the spans to rank 0 as the
// bytes of Encode; rank 0 decodes them and calls Write. Moving the bytes, and
// finding out how far the clocks of hosts are apart (RankSpans.Shift), is the
// caller's business.
package trace
