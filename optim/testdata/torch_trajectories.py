"""Writes torch_trajectories.json: what PyTorch's optimizers make of fixed
gradients. Run with PyTorch 1.13 in this directory: python3 torch_trajectories.py

Each case is a list of steps, each step the values of the decayed parameter
followed by those of the one that is not decayed. trajectory_test.go has the
same starting values, gradients and rates, all exact in float32 but the rates.
"""
import json

import torch

STEPS, DECAYED, OTHER = 20, 5, 3


def start(n, shift):
    return torch.tensor([((5 * i + shift) % 7 - 3) / 4 for i in range(n)], dtype=torch.float32)


def gradient(n, step, shift):
    return torch.tensor([((7 * step + 3 * i + shift) % 11 - 5) / 8 for i in range(n)], dtype=torch.float32)


CASES = {
    "sgd": lambda p: torch.optim.SGD(p, lr=1),
    "sgd decay": lambda p: torch.optim.SGD(p, lr=1, weight_decay=0.0625),
    "momentum": lambda p: torch.optim.SGD(p, lr=1, momentum=0.9, weight_decay=0.0625),
    "momentum dampening": lambda p: torch.optim.SGD(p, lr=1, momentum=0.75, dampening=0.5),
    "nesterov": lambda p: torch.optim.SGD(p, lr=1, momentum=0.9, weight_decay=0.0625, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=1),
    "adam decay": lambda p: torch.optim.Adam(p, lr=1, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.0625),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1, weight_decay=0.0625),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1),
    "rmsprop momentum": lambda p: torch.optim.RMSprop(p, lr=1, alpha=0.9, eps=1e-6, momentum=0.5, weight_decay=0.0625),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=1),
    "adagrad decay": lambda p: torch.optim.Adagrad(p, lr=1, eps=1e-6, weight_decay=0.0625),
}


def run(make):
    decayed, other = start(DECAYED, 1), start(OTHER, 4)
    optimizer = make([{"params": [decayed]}, {"params": [other], "weight_decay": 0}])
    steps = []
    for step in range(1, STEPS + 1):
        for group in optimizer.param_groups:
            group["lr"] = 0.1 / step
        decayed.grad, other.grad = gradient(DECAYED, step, 0), gradient(OTHER, step, 2)
        optimizer.step()
        steps.append([float("%.9g" % v) for v in decayed.tolist() + other.tolist()])
    return steps


with open("torch_trajectories.json", "w") as f:
    cases = {name: run(make) for name, make in CASES.items()}
    f.write("{\n" + ",\n".join(
        json.dumps(name) + ": [\n" + ",\n".join(json.dumps(step) for step in steps) + "\n]"
        for name, steps in cases.items()) + "\n}\n")
