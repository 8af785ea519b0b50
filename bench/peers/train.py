#!/usr/bin/env python3
"""Trains one of the jobs of configs/bench in PyTorch, alone or with
DistributedDataParallel over gloo, and prints a line of JSON.

    python3 train.py --model resnet18 --procs 1 --threads 1

Beside it a line "first" is printed as soon as the first step is done."""
import argparse
import contextlib
import json
import os
import re
import resource
import statistics
import sys
import time

MODELS = ("resnet18", "resnet50", "resnet20", "mlp", "cnn", "gpt")


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--model", required=True, choices=MODELS)
    p.add_argument("--procs", type=int, default=1, help="more than one means DistributedDataParallel")
    p.add_argument("--threads", type=int, default=1, help="of each process")
    p.add_argument("--seconds", type=float, default=8, help="of timed steps")
    p.add_argument("--warmup", type=int, default=3)
    p.add_argument("--batch", type=int, default=0, help="samples a micro-batch of a process; 0: the job's")
    p.add_argument("--accumulate", type=int, default=1, metavar="K", help="K micro-batches a step, the first ones under no_sync")
    p.add_argument("--rank", type=int, default=-1, help="run only this rank, with --address and --interface: of several hosts")
    p.add_argument("--address", default="127.0.0.1", help="of rank 0")
    p.add_argument("--interface", default="lo")
    p.add_argument("--port", type=int, default=29710)
    p.add_argument("--channels-last", action="store_true")
    p.add_argument("--any-blas", action="store_true", help="go on without a fast BLAS")
    return p.parse_args()


A = arguments()
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(A.threads)
try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as processes
    import torch.nn as nn
    import torch.nn.functional as F
except ImportError as e:
    sys.exit(f"PyTorch is missing ({e}); on Debian: apt-get install --no-install-recommends python3-torch libopenblas0-pthread, and /usr/bin/python3")


def blas():
    """Names the library that multiplies matrices. Debian's torch takes whatever
    libblas.so.3 is, and the reference one is about twenty times slower: a peer
    that runs on it proves nothing."""
    if re.search(r"BLAS_INFO=mkl|Math Kernel Library", torch.__config__.show()):
        return "MKL"
    if os.path.exists("/proc/self/maps"):
        with open("/proc/self/maps") as f:
            found = re.findall(r"openblas|blis|atlas|mkl_rt|armpl", f.read())
        name = found[0] if found else ""
    else:
        name = "unknown" if gemm() > 20 else ""
    if not name and not A.any_blas:
        sys.exit(f"this PyTorch multiplies matrices with a slow BLAS ({gemm():.0f} GFLOP/s), so it would be no fair peer; on Debian: "
                 "apt-get install libopenblas0-pthread (or go on with --any-blas)")
    return name or "slow"


def gemm():
    """GFLOP/s of a product of two matrices."""
    n = 512
    a = torch.ones(n, n)
    return 2 * n**3 / min(timed(lambda: a @ a) for _ in range(6)) / 1e9


def timed(f):
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def norm_conv(i, o, size, stride=1):
    return nn.Conv2d(i, o, size, stride, size // 2, bias=False), nn.BatchNorm2d(o)


class Residual(nn.Module):
    def __init__(self, i, o, stride, deep):
        super().__init__()
        out = 4 * o if deep else o
        if deep:
            layers = [*norm_conv(i, o, 1), nn.ReLU(True), *norm_conv(o, o, 3, stride), nn.ReLU(True), *norm_conv(o, out, 1)]
        else:
            layers = [*norm_conv(i, o, 3, stride), nn.ReLU(True), *norm_conv(o, o, 3)]
        self.main = nn.Sequential(*layers)
        self.shortcut = nn.Sequential(*norm_conv(i, out, 1, stride)) if stride > 1 or i != out else nn.Identity()

    def forward(self, x):
        return F.relu(self.main(x) + self.shortcut(x), True)


def resnet(stages, classes, deep=False, small=True, base=64):
    if small:
        layers = [*norm_conv(3, base, 3), nn.ReLU(True)]
    else:
        layers = [*norm_conv(3, base, 7, 2), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
    i = base
    for stage, blocks in enumerate(stages):
        o = base << stage
        for block in range(blocks):
            layers.append(Residual(i, o, 2 if stage and not block else 1, deep))
            i = 4 * o if deep else o
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, classes))


class Attention(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.later = torch.full((length, length), -torch.inf).triu(1)

    def forward(self, x):
        n, length, width = x.shape
        q, k, v = self.into(x).view(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        shares = torch.softmax(q @ k.transpose(2, 3) * self.scale + self.later, 3)
        return self.out((shares @ v).transpose(1, 2).reshape(n, length, width))


class Transformer(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        self.attention = nn.Sequential(nn.LayerNorm(width), Attention(width, heads, length))
        self.perceptron = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(x)
        return x + self.perceptron(x)


class GPT(nn.Module):
    def __init__(self, vocabulary=256, length=256, width=384, heads=6, layers=6):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.Sequential(*(Transformer(width, heads, length) for _ in range(layers)), nn.LayerNorm(width))
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, 0, 0.02)

    def forward(self, x):
        x = self.blocks(self.tokens(x) + self.positions)
        return F.linear(x, self.tokens.weight).flatten(0, 1)


def job(name):
    """Returns the model, samples and targets of one process, and what is counted."""
    def images(n, *shape, classes=10):
        n = A.batch or n
        return torch.randn(n, *shape), torch.randint(classes, (n,)), n, "samples"

    if name == "resnet18":
        return resnet([2, 2, 2, 2], 10), *images(32, 3, 32, 32)
    if name == "resnet50":
        return resnet([3, 4, 6, 3], 1000, deep=True, small=False), *images(8, 3, 224, 224, classes=1000)
    if name == "resnet20":
        return resnet([3, 3, 3], 10, base=16), *images(64, 3, 32, 32)
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)), *images(64, 1, 28, 28)
    if name == "cnn":
        return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                             nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10)), *images(64, 1, 28, 28)
    n = A.batch or 8
    return GPT(), torch.randint(256, (n, 256)), torch.randint(256, (n * 256,)), n * 256, "tokens"


def work(rank, library):
    torch.set_num_threads(A.threads)
    torch.manual_seed(rank)
    model, x, y, count, unit = job(A.model)
    params = sum(p.numel() for p in model.parameters())
    if A.channels_last and x.dim() == 4:
        model, x = model.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    if A.procs > 1:
        os.environ.update(MASTER_ADDR=A.address, MASTER_PORT=str(A.port), GLOO_SOCKET_IFNAME=A.interface)
        dist.init_process_group("gloo", rank=rank, world_size=A.procs)
        model = nn.parallel.DistributedDataParallel(model)
    if A.model == "gpt":
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.01)
    else:
        optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)

    def step():
        optimizer.zero_grad(set_to_none=True)
        for k in range(A.accumulate):
            apart = A.procs > 1 and k < A.accumulate - 1
            with model.no_sync() if apart else contextlib.nullcontext():
                loss = F.cross_entropy(model(x), y) / A.accumulate
                loss.backward()
        optimizer.step()
        return loss

    loss_first = step().item() * A.accumulate
    if rank == 0:
        print("first", flush=True)
    typical = statistics.median(timed(step) for _ in range(A.warmup))
    steps = torch.tensor([max(int(A.seconds / typical), 8)])
    if A.procs > 1:
        dist.broadcast(steps, 0)
    seconds = torch.tensor([timed(step) for _ in range(int(steps))], dtype=torch.float64)
    memory = torch.tensor([resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024])
    if A.procs > 1:
        dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
        dist.all_reduce(memory, op=dist.ReduceOp.MAX)
    middle = statistics.median(seconds.tolist())
    if rank == 0:
        print(json.dumps({
            "model": A.model, "procs": A.procs, "threads": A.threads, "params": params, "unit": unit, "steps": int(steps),
            "per_sec": count * A.accumulate * A.procs / middle, "step_ms_p50": middle * 1e3, "step_ms_best": min(seconds.tolist()) * 1e3,
            "peak_rss_mb": memory.item(), "loss_first": loss_first, "torch": torch.__version__, "blas": library, "gemm_gflops": gemm()}), flush=True)
    if A.procs > 1:
        # Closing the group now and then never ends for the rank that closes last,
        # whose thread polls a closed socket.
        dist.barrier()
        os._exit(0)


if __name__ == "__main__":
    library = blas()
    if A.procs == 1 or A.rank >= 0:
        work(max(A.rank, 0), library)
    else:
        processes.spawn(work, (library,), A.procs)
