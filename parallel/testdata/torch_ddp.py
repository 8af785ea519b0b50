"""Dumps what PyTorch's DistributedDataParallel computes on two gloo processes.

    python3 torch_ddp.py > torch_ddp.json      # PyTorch 1.13, CPU

For each case the file has the layers, their parameters before the step, the
samples of each rank, and afterwards the gradients on rank 0 (equal on rank 1)
and what else the case is about. DDP averages over ranks, so losses are scaled
such that the average is the mean over all samples. PyTorch's SyncBatchNorm needs
a GPU: the case "batchnorm" is BatchNorm1d over both ranks' samples in one
process, which SyncBatchNorm is defined to equal.
"""

import json
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

IN, HIDDEN, CLASSES = 6, 5, 4


class Net(torch.nn.Module):
    """first, then what the case asks for, then last; spare only where used."""

    def __init__(self, kind):
        super().__init__()
        torch.manual_seed(11)
        self.kind = kind
        self.first = torch.nn.Linear(IN, HIDDEN)
        if kind in ("tied", "unused"):
            self.middle = torch.nn.Linear(HIDDEN, HIDDEN)
        if kind == "batchnorm":
            self.bn = torch.nn.BatchNorm1d(HIDDEN)
            with torch.no_grad():
                self.bn.weight.copy_(torch.linspace(0.5, 1.5, HIDDEN))
                self.bn.bias.copy_(torch.linspace(-0.2, 0.2, HIDDEN))
        self.last = torch.nn.Linear(HIDDEN, CLASSES)

    def forward(self, x, use_middle=True):
        x = self.first(x)
        if self.kind == "batchnorm":
            x = self.bn(x)
        x = torch.tanh(x)
        if self.kind == "tied":
            x = torch.tanh(self.middle(torch.tanh(self.middle(x))))
        if self.kind == "unused" and use_middle:
            x = torch.tanh(self.middle(x))
        return self.last(x)


# By case: samples of each micro-batch of each rank.
CASES = {
    "accumulation": [[3, 3], [3, 3]],
    "unequal": [[4, 1], [2, 1]],
    "batchnorm": [[5], [3]],
    "clipping": [[3, 3], [3, 3]],
    "tied": [[3, 3], [3, 3]],
    "unused": [[4], [4]],
}
CLIP, LR = 0.05, 0.5


def samples(case):
    g = torch.Generator().manual_seed(5)
    n = sum(sum(r) for r in CASES[case])
    return torch.randn(n, IN, generator=g), torch.randint(0, CLASSES, (n,), generator=g)


def flat(t):
    return [float(v) for v in t.detach().reshape(-1)]


def describe(case, net, before, x, y, extra):
    return {
        "micros": CASES[case],
        "x": flat(x),
        "y": [int(v) for v in y],
        "before": before,
        "gradients": {k: flat(p.grad) for k, p in net.named_parameters() if p.grad is not None},
        **extra,
    }


def parameters(net):
    return {k: flat(p) for k, p in net.named_parameters()}


def run(rank, out):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29611")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.set_num_threads(1)
    for case, micros in CASES.items():
        if case == "batchnorm":
            continue
        net = Net(case)
        before = parameters(net)
        ddp = DDP(net, find_unused_parameters=case == "unused")
        x, y = samples(case)
        at = sum(micros[0]) if rank == 1 else 0
        for i, n in enumerate(micros[rank]):
            def step():
                logits = ddp(x[at : at + n], use_middle=rank == 0)
                loss = F.cross_entropy(logits, y[at : at + n], reduction="sum") * 2 / len(y)
                loss.backward()

            if i + 1 < len(micros[rank]):
                with ddp.no_sync():
                    step()
            else:
                step()
            at += n
        extra = {}
        if case == "clipping":
            extra["norm"] = float(torch.nn.utils.clip_grad_norm_(net.parameters(), CLIP))
            extra["clip"], extra["lr"] = CLIP, LR
            torch.optim.SGD(net.parameters(), lr=LR).step()
            extra["after"] = parameters(net)
        if rank == 0:
            out[case] = describe(case, net, before, x, y, extra)
    dist.destroy_process_group()


def big_batch(out):
    case = "batchnorm"
    net = Net(case)
    before = parameters(net)
    x, y = samples(case)
    F.cross_entropy(net(x), y).backward()
    extra = {"running_mean": flat(net.bn.running_mean), "running_var": flat(net.bn.running_var)}
    out[case] = describe(case, net, before, x, y, extra)


if __name__ == "__main__":
    with mp.Manager() as manager:
        out = manager.dict()
        mp.spawn(run, args=(out,), nprocs=2)
        big_batch(out)
        json.dump({"torch": torch.__version__, "cases": dict(out)}, sys.stdout, indent=1, sort_keys=True)
        sys.stdout.write("\n")
