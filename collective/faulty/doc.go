// Package faulty makes a transport misbehave on purpose, so that a job can be
// tested against slow, broken and dying peers.
//
//	faults, err := faulty.ParseAll([]string{"rank=1 kind=delay after=10 count=3 for=2s"})
//	transport = faulty.Wrap(transport, faulty.Config{Faults: faults})
//
// A fault is a line of key=value:
//
//	rank    whose sending is hit; needed
//	kind    delay    the message leaves after a time; for=100ms
//	        reorder  later messages overtake it, but those of its own tag, for a time; for=10ms
//	        drop     it never leaves; count=0
//	        corrupt  a bit of it changes
//	        freeze   the rank neither sends nor receives any more, for a time; for=0 is for ever
//	        kill     the rank's transport closes, or what Config.Kill does
//	peer    only messages to this rank count; any
//	after   messages that pass first; 0
//	count   messages that are hit; 1, and 0 is all that follow
//	for     a time such as 250ms
//	chance  the share of the messages in turn that is hit; 1
//	seed    of the draws; 1
//
// A message is a Send, or a call of a Direct, which needs no messages. Delays
// and reordering never change a result. What drop and freeze lead to is a
// time-out, and corrupt an error where the header is hit or the transport checks
// sums; a transport that has DamageNext(to int) bool is asked to damage the message
// below its checksum.
//
// The wrapper has all of the transport's methods, with its fast paths. Peers of
// a rank without faults need no wrapper.
package faulty
