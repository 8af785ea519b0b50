// Package launch starts the ranks of a job on one host and tells a process
// which rank it is, whoever started it.
//
// Run starts N copies of a command and looks after them: it files their output,
// passes signals on, ends them all when one fails, and leaves none behind, also
// when it is killed itself (Linux: the kernel then kills every worker's process
// group; a worker's child that makes a session of its own escapes).
//
// A worker calls FromEnvironment, which understands Run's variables and those of
// torchrun, mpirun, srun and Kubernetes; Connect, which brings it to the job's
// rendezvous store and returns when all ranks are there and agree on who is who;
// and, for systems other than Linux, WatchParent:
//
//	place, started, err := launch.FromEnvironment(os.Getenv)
//	...
//	go func() {
//		if launch.WatchParent(ctx, place) != nil {
//			os.Exit(3)
//		}
//	}()
//	meeting, err := launch.Connect(ctx, place)
//	world, err := tcp.Join(ctx, tcp.Config{
//		Rank: place.Rank, Size: place.Size, Namespace: place.Job, Token: place.Token,
//		Store: meeting.Store, ListenAddr: meeting.LocalAddr(),
//	})
//
// Workers should end gently on SIGINT and SIGTERM: finish the step, write a
// checkpoint, exit with 130. Run sets RANK, WORLD_SIZE, LOCAL_RANK,
// LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and variables of its own that
// begin with GRADFUSION_. Starting ranks on other hosts and restarting them are
// not here.
package launch
