// Package mixed connects ranks on several hosts: over shared memory inside each
// host, over TCP across. It routes; package shm and package tcp do the work.
//
//	host A: 0 1   host B: 2 3       0 == 1    2 == 3     shared memory
//	                                0 -- 2 -- 1 -- 3     TCP, every pair across
//
// Hosts finds out who shares a host: ranks of which one can connect to an
// abstract unix socket of the other, that is ranks of one kernel and one network
// namespace. Join connects them. A host whose ranks cannot share memory all the
// same is connected over TCP as well.
//
// Groups inside one host get the shared memory's Direct, and so buckets in
// shared memory and calls without messages. Groups over several hosts exchange
// messages, those inside a host through the memory; the hierarchical plan makes
// the most of that. Errors name ranks by their numbers in the whole world,
// whichever transport met them, and a rank that is lost to one transport is lost
// to the other at once.
//
// # What the caller must do
//
// As with the two transports: close the groups, then the transport, when nobody
// uses memory from Comm.Alloc any more.
//
// Left out: worlds on one host and worlds of single ranks, for which one of the
// two transports is enough.
package mixed
