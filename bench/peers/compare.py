#!/usr/bin/env python3
"""Runs train bench and its peers in turn and prints a Markdown table of medians
and ratios. See README.md."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
UNITS = {"gib": 1 << 30, "mib": 1 << 20, "kib": 1 << 10, "gb": 10**9, "mb": 10**6, "kb": 10**3, "b": 1}
ROOT = ["--allow-run-as-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []


def bytes_of(text):
    for name, unit in UNITS.items():
        if text.lower().endswith(name):
            return int(text[: -len(name)]) * unit
    return int(text)


def in_words(us):
    for limit, scale, unit in ((1e3, 1, "us"), (1e6, 1e3, "ms"), (float("inf"), 1e6, "s")):
        if us < limit:
            return f"{us / scale:.3g} {unit}"


class Contender:
    """One way to run the operation: a command that prints lines of JSON."""

    def __init__(self, name, command, environ=None):
        self.name, self.command, self.environ = name, command, environ or {}
        self.rounds = []  # of each: size -> result

    def run(self):
        done = subprocess.run(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **self.environ})
        results = {}
        for line in done.stdout.splitlines():
            if line.startswith("{"):
                result = json.loads(line)
                results[result["bytes"]] = result
                if not result["correct"]:
                    sys.exit(f"{self.name}: a wrong result: {line}")
        if done.returncode != 0 or not results:
            sys.exit(f"{self.name}: {' '.join(self.command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
        self.rounds.append(results)

    def figure(self, size, key="lat_us_p50"):
        return [r[size][key] for r in self.rounds if key in r.get(size, {})]


def contenders(a, op, folder):
    sizes = ",".join(str(bytes_of(s)) for s in a.sizes.split(","))
    ours = [a.train, "bench", "-op", op, "-dtype", a.dtype, "-nproc", str(a.nproc), "-sizes", sizes, "-transport", a.transport, "-json"]
    out = [Contender("GradFusion, registered", ours + (["-limit"] if op == "allreduce" else []))]
    if a.transport != "tcp":
        out.append(Contender("GradFusion, private", ours + ["-private"]))
    if "openmpi" in a.peers and a.dtype in ("f32", "f64", "i32", "i64"):
        mpicc, mpirun = (shutil.which(n + ".openmpi") or shutil.which(n) for n in ("mpicc", "mpirun"))
        if not mpicc or not mpirun:
            sys.exit("Open MPI is not installed; see README.md, or leave it out with --peers gloo")
        program = os.path.join(folder, "mpi")
        subprocess.run([mpicc, "-O2", os.path.join(HERE, "mpi.c"), "-o", program], check=True)
        start = [mpirun, *ROOT, "--oversubscribe", "-np", str(a.nproc)]
        if a.transport == "tcp":
            start += ["--mca", "btl", "tcp,self"]
        # Polling ranks that yield lose to whatever else runs, but must where they share cores.
        patience = {"OMPI_MCA_mpi_yield_when_idle": "1" if a.nproc > (os.cpu_count() or 1) else "0"}
        for form, words in (("inplace", "in place"), ("apart", "out of place")):
            out.append(Contender("Open MPI, " + words, start + [program, op, a.dtype, form, sizes], patience))
    if "gloo" in a.peers:
        out.append(Contender("gloo", ["/usr/bin/python3", os.path.join(HERE, "gloo.py"), "--op", op, "--dtype", a.dtype, "--nproc", str(a.nproc), "--sizes", sizes]))
    return out


def ratio(ours, peers, size):
    """Median over the rounds of ours over the fastest of peers."""
    ratios = []
    for i, mine in enumerate(ours.rounds):
        theirs = [p.rounds[i][size]["lat_us_p50"] for p in peers if size in p.rounds[i]]
        if theirs and size in mine:
            ratios.append(mine[size]["lat_us_p50"] / min(theirs))
    return f"{statistics.median(ratios):.3g}" if ratios else "-"


def table(a, op, all):
    # Sizes as our own results have them: an operation may round down.
    sizes = sorted(all[0].rounds[0])
    asked = a.sizes.split(",")
    names = asked if len(asked) == len(sizes) else [str(s) for s in sizes]
    print(f"\n| {op} {a.dtype}, {a.nproc} ranks, {all[0].rounds[0][sizes[0]]['transport']} | " + " | ".join(names) + " |")
    print("|---|" + "---|" * len(sizes))
    for c in all:
        cells = [(c.figure(s), c.figure(s, "lat_us_best")) for s in sizes]
        print(f"| {c.name} | " + " | ".join(f"{in_words(statistics.median(m))} ({in_words(min(b))})" if m else "-" for m, b in cells) + " |")
    limits = [all[0].figure(s, "limit_us") for s in sizes]
    if any(limits):
        print("| limit of memory (best) | " + " | ".join(in_words(min(l)) if l else "-" for l in limits) + " |")
        shares = [[r[s]["limit_us"] / r[s]["lat_us_best"] for r in all[0].rounds if "limit_us" in r[s]] for s in sizes]
        print("| limit / registered, both at best | " + " | ".join(f"{statistics.median(s):.3g}" if s else "-" for s in shares) + " |")
    for ours in [c for c in all if c.name.startswith("GradFusion")]:
        for peer in ("Open MPI", "gloo"):
            theirs = [c for c in all if c.name.startswith(peer)]
            if theirs:
                print(f"| {ours.name.split(', ')[1]} / {peer} | " + " | ".join(ratio(ours, theirs, s) for s in sizes) + " |")


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--train", default="bin/train", help="the program")
    p.add_argument("--op", default="allreduce", help="operations with commas between them")
    p.add_argument("--dtype", default="f32")
    p.add_argument("--nproc", type=int, default=2)
    p.add_argument("--sizes", default="1KiB,64KiB,1MiB,16MiB,64MiB")
    p.add_argument("--transport", default="auto", choices=["auto", "shm", "tcp"])
    p.add_argument("--peers", default="openmpi,gloo")
    p.add_argument("--rounds", type=int, default=5)
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for op in a.op.split(","):
            all = contenders(a, op, folder)
            for n in range(a.rounds):
                for c in all:
                    print(f"{op}, round {n + 1} of {a.rounds}: {c.name}", file=sys.stderr)
                    c.run()
            table(a, op, all)


if __name__ == "__main__":
    main()
