#!/usr/bin/env python3
"""Times gloo collectives and prints a line of JSON for each size.

    python3 gloo.py --op allreduce --dtype f32 --nproc 2 --sizes 1024,1048576
"""
import argparse
import json
import os
import statistics
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"
import torch
import torch.distributed as dist
import torch.multiprocessing as processes

APART = 128 << 10  # larger calls each follow a barrier
TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64,
         "i32": torch.int32, "i64": torch.int64, "i8": torch.int8, "u8": torch.uint8}


class Operation:
    """One operation on vectors of count elements; call() runs it in place where gloo can."""

    def __init__(self, name, dtype, count, rank, ranks):
        part = count // ranks
        self.whole = torch.zeros(part * ranks if name in ("allgather", "reducescatter") else count, dtype=dtype)
        parts = list(self.whole.chunk(ranks))
        own = torch.zeros(part, dtype=dtype)
        self.result, self.expected = self.whole, ranks
        if name == "allreduce":
            self.call = lambda: dist.all_reduce(self.whole)
        elif name == "broadcast":
            self.call, self.expected = lambda: dist.broadcast(self.whole, 0), 1
        elif name == "reduce":
            self.call = lambda: dist.reduce(self.whole, 0)
            self.expected = ranks if rank == 0 else None
        elif name == "allgather":
            self.call, self.expected = lambda: dist.all_gather(parts, own), 1
            self.whole = own
        elif name == "reducescatter":
            self.call, self.result = lambda: dist.reduce_scatter(own, parts), own
        else:
            raise ValueError("gloo.py has no " + name)

    def right(self):
        self.whole.fill_(1)
        self.call()
        ok = self.expected is None or bool((self.result == self.expected).all())
        self.whole.zero_()
        self.result.zero_()
        return ok


def timed(operation, times, apart):
    seconds = []
    for i in range(times):
        if apart or i % 64 == 0:
            dist.barrier()
        start = time.perf_counter()
        operation.call()
        seconds.append(time.perf_counter() - start)
    slowest = torch.tensor(seconds, dtype=torch.float64)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.tolist()


def work(rank, a):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(a.port), GLOO_SOCKET_IFNAME="lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=a.nproc)
    dtype = TYPES[a.dtype]
    width = torch.zeros(1, dtype=dtype).element_size()
    for size in map(int, a.sizes.split(",")):
        operation = Operation(a.op, dtype, size // width, rank, a.nproc)
        right = operation.right()
        apart = size > APART
        typical = statistics.median(timed(operation, 8, apart))
        seconds = timed(operation, int(min(max(a.budget / typical, 12), 5000)), apart)
        verdict = torch.tensor([int(right)])
        dist.all_reduce(verdict, op=dist.ReduceOp.MIN)
        if rank == 0:
            print(json.dumps({"op": a.op, "dtype": a.dtype, "bytes": size, "ranks": a.nproc, "iters": len(seconds),
                              "lat_us_p50": statistics.median(seconds) * 1e6, "lat_us_best": min(seconds) * 1e6,
                              "correct": bool(verdict.item())}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--op", default="allreduce")
    p.add_argument("--dtype", default="f32", choices=TYPES)
    p.add_argument("--nproc", type=int, default=2)
    p.add_argument("--sizes", default="1024,65536,1048576")
    p.add_argument("--budget", type=float, default=0.5, help="seconds of timed calls for each size")
    p.add_argument("--port", type=int, default=29655)
    arguments = p.parse_args()
    sys.stdout.flush()
    processes.spawn(work, (arguments,), arguments.nproc)
