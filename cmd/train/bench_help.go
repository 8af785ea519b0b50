package main

const benchHelp = `train bench measures collective operations over the road that trainings take,
or how a training scales.

    train bench [-op allreduce] [-nproc N] [-sizes 1KiB,64KiB,1MiB] [-dtype f32]
                [-transport auto|inproc|shm|tcp] [-algorithm auto|NAME]
                [-wire NAMES] [-pack] [-private] [-json] [-plot FILE.svg]
                [-limit] [-waiting] [-iters N] [-warmup N] [-config FILE]
                [-set key=value]...
    train bench -scaling 1,2,4 -config FILE [-json] [-iters N] [-runs N]
                [-set key=value]...

    -op NAMES        allreduce, reduce, broadcast, allgather, reducescatter,
                     gather, scatter, alltoall, barrier, sendrecv; several with
                     commas between them, or all
    -nproc N         start N worker processes (2); inproc has N goroutines
    -sizes LIST      of the full vector, as in 1KiB,64MiB (powers of two) or
                     1KB,1MB; 1KiB..64MiB doubles
    -dtype NAMES     f32, f16, bf16, f64, i32, i64, i8, u8
    -algorithm NAMES with several, the sizes at which one overtakes another are
                     shown
    -wire NAMES      encode what all-reduces of f32 send: f32 (as it is), f16,
                     bf16, int8, int4, topk (1 %)
    -pack            pack floats without loss on their way over tcp, and send
                     numbers like gradients
    -private         ordinary memory instead of memory that ranks can share
    -json            a line of JSON for each measurement instead of a table
    -plot FILE.svg   draw time and bandwidth over size; - draws on the terminal
    -limit           measure the limit of memory for all-reduces, also for -json
    -waiting         measure by how much a computation takes longer while a call
                     waits for a peer
    -iters, -warmup  timed calls and those before them (0: chosen by time)

A time is the slowest rank's; medians are shown. Results are compared with the
exact answer on all ranks.

    -scaling LIST    run the training of -config at these numbers of ranks,
                     without evaluation: the batch of a rank stays what it is in
                     the configuration's own job, and its threads are what it
                     gets at the largest number. Speed-up is over the first
                     number's samples a second, and efficiency is speed-up over
                     the ratio of ranks
    -iters N         measured steps of each run (10), after 3 to warm up
    -runs N          runs of each number of ranks, taken in turn (3)
`
