// Package ascendsim builds simulated Ascend libraries for tests: libascendcl and
// libhccl (and libhcomm, as CANN 9 has it) in C, with the vendor's symbols and
// types, written from the interface's description alone and apart from the
// binding that it tests. Nothing here has met a device. Main and Again serve the
// tests of packages that load them.
//
// It is stricter than the hardware where that helps to find mistakes: device
// addresses cannot be touched by the host, a thread without a context is refused,
// arguments are compared over the ranks, memory that was freed too early fails the
// stream, and what was made and not released is counted (ascendsim_alive). What it
// cannot show: real symbol versions, timing, limits of memory, and the network.
//
// The reductions go in the order of the ranks, 16-bit types in float32 and rounded
// once; real HCCL promises no order unless it is told to be deterministic.
//
// Environment variables of the simulator alone: ASCENDSIM_CHIP (910A or 910B),
// ASCENDSIM_DEVICES (8), ASCENDSIM_BUSY and ASCENDSIM_UNHEALTHY (lists of devices),
// ASCENDSIM_CONNECT_TIMEOUT_MS and ASCENDSIM_EXEC_TIMEOUT_MS (the real variables
// keep their ranges), ASCENDSIM_JOB (tells jobs with one rank table apart),
// ASCENDSIM_NO_SUBS (1 refuses to cut communicators), ASCENDSIM_OLD (1 takes the
// oldest configuration only), and
// ASCENDSIM_FAULTS, such as "rank=1 kind=kill after=3; rank=0 kind=delay ms=50";
// kind is kill, stop (the process, as SIGSTOP does), freeze, delay, again
// (HcclCommDestroy, count times) or async; "at=join" has kill, stop and delay happen
// while a communicator is made, the one after so many of the process; rank is the
// number of the device then.
package ascendsim
