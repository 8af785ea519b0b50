#!/usr/bin/env python3
"""Compares what the wires of gradients do to the evaluation loss of resnet.yaml:
wires.py DATA trains it with each wire and seed on the first 12,000 training images
of Fashion-MNIST, which are the embedded ones, and evaluates on all 10,000 test
images. DATA is the directory of the published files, gzipped or not."""
import argparse
import gzip
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile

TRAINING = 12_000
WIRES = ("f32", "f16", "bf16", "int8", "int4", "topk", "powersgd")


def published(directory, name):
    path = os.path.join(directory, name)
    if os.path.exists(path):
        with open(path, "rb") as f:
            return f.read()
    with gzip.open(path + ".gz") as f:
        return f.read()


def lay_out(source, target):
    """Writes the IDX files, those of training cut."""
    for kind in ("train", "t10k"):
        for name in (f"{kind}-images-idx3-ubyte", f"{kind}-labels-idx1-ubyte"):
            content = published(source, name)
            dimensions = content[3]
            shape = struct.unpack(f">{dimensions}I", content[4:4 + 4 * dimensions])
            count = min(shape[0], TRAINING) if kind == "train" else shape[0]
            size = 1
            for n in shape[1:]:
                size *= n
            body = content[4 + 4 * dimensions:][:count * size]
            with open(os.path.join(target, name), "wb") as f:
                f.write(content[:4] + struct.pack(f">{dimensions}I", count, *shape[1:]) + body)


def train(binary, data, run, wire, seed, more):
    summary = os.path.join(run, "figures.json")
    settings = [f"data.path={data}", f"train.seed={seed}", f"fusion.wire={wire}", "train.eval_every=never", f"observe.run_dir={run}/run", *more]
    command = [binary, "-config", "resnet.yaml", "-summary", summary]
    for s in settings:
        command += ["-set", s]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    with open(summary) as f:
        return json.load(f)["eval_loss"]


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("data", metavar="DATA")
    p.add_argument("--binary", default="bin/train")
    p.add_argument("--wires", default=",".join(WIRES))
    p.add_argument("--seeds", default="1,2,3")
    p.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    a = p.parse_args()
    seeds, base = a.seeds.split(","), None
    print("| wire |", " | ".join("seed " + s for s in seeds), "| mean | against the first |")
    print("|---" * (len(seeds) + 3) + "|")
    with tempfile.TemporaryDirectory() as directory:
        lay_out(a.data, directory)
        for wire in a.wires.split(","):
            losses = [train(a.binary, directory, directory, wire, s, a.set) for s in seeds]
            mean = statistics.fmean(losses)
            base = base or mean
            print(f"| {wire} |", " | ".join(f"{x:.4f}" for x in losses), f"| {mean:.4f} | {100 * (mean / base - 1):+.1f} % |", flush=True)


if __name__ == "__main__":
    main()
