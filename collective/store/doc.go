// Package store is where the ranks of a job meet: a small table of keys and
// values that rank 0's host serves over TCP.
//
// A rank publishes its address under a key and waits for the keys of the
// others; counters hand out numbers; a will is a key that is set when its
// owner's connection breaks, so that whoever waits for that key learns of the
// death. Both ends prove the job's token before anything else is read, and a
// stranger (a port scan, a web browser) costs one connection for a few seconds.
//
// The caller must close both Server and Client, ranks other than 0 first or
// after Server.Drain. The table lives in memory and ends with the server: there
// is no replication and no encryption here. Other stores (etcd, for one) come in
// as types with the methods that their users ask for; users declare small
// interfaces of their own.
package store
