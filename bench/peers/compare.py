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

    def __init__(self, name, command, environ=None, shrink=1):
        self.name, self.command, self.environ = name, command, environ or {}
        self.shrink = shrink  # sizes are divided by this
        self.rounds = []  # of each: size -> result

    def run(self):
        done = subprocess.run(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **self.environ})
        results = {}
        for line in done.stdout.splitlines():
            if line.startswith("{"):
                result = json.loads(line)
                results[result["bytes"] // self.shrink] = result
                if not result["correct"]:
                    sys.exit(f"{self.name}: a wrong result: {line}")
        if done.returncode != 0 or not results:
            sys.exit(f"{self.name}: {' '.join(self.command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
        self.rounds.append(results)

    def figure(self, size, key="lat_us_p50"):
        return [r[size][key] for r in self.rounds if key in r.get(size, {})]


def contenders(a, op, folder):
    sizes = ",".join(str(bytes_of(s)) for s in a.sizes.split(","))
    ours = [a.train, "bench", "-op", op, "-nproc", str(a.nproc), "-transport", a.transport, "-json"]
    typed = ours + ["-dtype", a.dtype, "-sizes", sizes]
    out = [Contender("GradFusion, registered", typed + (["-limit"] if op == "allreduce" and a.transport != "tcp" else []))]
    if a.transport == "tcp":
        out[0].name = "GradFusion"
    elif a.private:
        out.append(Contender("GradFusion, private", typed + ["-private"]))
    if a.dtype == "f16":  # the same number of elements
        double = ",".join(str(2 * bytes_of(s)) for s in a.sizes.split(","))
        out.append(Contender("GradFusion f32, as many elements", ours + ["-dtype", "f32", "-sizes", double], shrink=2))
    if "openmpi" in a.peers and a.dtype in ("f32", "f64", "i32", "i64"):
        out += open_mpi(a, op, sizes, folder)
    if "gloo" in a.peers:
        out.append(Contender("gloo", ["/usr/bin/python3", os.path.join(HERE, "gloo.py"), "--op", op, "--dtype", a.dtype, "--nproc", str(a.nproc), "--sizes", sizes]))
    return out


def open_mpi(a, op, sizes, folder):
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
    forms = (("inplace", "in place"), ("apart", "out of place"))
    return [Contender("Open MPI, " + words, start + [program, op, a.dtype, form, sizes], patience) for form, words in forms]


def ratio(ours, peers, size):
    """Median over the rounds of ours over the fastest of peers."""
    ratios = []
    for i, mine in enumerate(ours.rounds):
        theirs = [p.rounds[i][size]["lat_us_p50"] for p in peers if size in p.rounds[i]]
        if theirs and size in mine:
            ratios.append(mine[size]["lat_us_p50"] / min(theirs))
    return f"{statistics.median(ratios):.3g}" if ratios else "-"


def table(a, op, all):
    """The lines of a Markdown table."""
    # Sizes as our own results have them: an operation may round down.
    sizes = sorted(all[0].rounds[0])
    asked = a.sizes.split(",")
    names = asked if len(asked) == len(sizes) else [str(s) for s in sizes]
    lines = []

    def row(name, cells):
        lines.append("| " + " | ".join([name, *cells]) + " |")
        if name in a.aims:
            lines.append("| *aim: at " + " | ".join([("least" if name.startswith("limit") else "most") + "*", *a.aims[name]]) + " |")

    row(f"{op} {a.dtype}, {a.nproc} ranks, {all[0].rounds[0][sizes[0]]['transport']}", names)
    lines.append("|---|" + "---|" * len(sizes))
    for c in all:
        cells = [(c.figure(s), c.figure(s, "lat_us_best")) for s in sizes]
        row(c.name, [f"{in_words(statistics.median(m))} ({in_words(min(b))})" if m else "-" for m, b in cells])
    limits = [all[0].figure(s, "limit_us") for s in sizes]
    if any(limits) and a.dtype == "f32":
        row("limit of memory (best)", [in_words(min(l)) if l else "-" for l in limits])
        shares = [[r[s]["limit_us"] / r[s]["lat_us_best"] for r in all[0].rounds if "limit_us" in r[s]] for s in sizes]
        row("limit / registered, both at best", [f"{statistics.median(s):.3g}" if s else "-" for s in shares])
    for ours in [c for c in all if c.name.startswith("GradFusion") and c.shrink == 1]:
        for peer in ("GradFusion f32", "Open MPI", "gloo"):
            theirs = [c for c in all if c.name.startswith(peer)]
            if theirs:
                row(f"{ours.name.split(', ')[-1]} / {peer.split()[-1] if 'f32' in peer else peer}", [ratio(ours, theirs, s) for s in sizes])
    return lines


def waiting(a):
    """A table of what a waiting call costs a computation beside it."""
    columns = ["shm", "tcp"]
    runs = [Contender(t, [a.train, "bench", "-waiting", "-json", "-sizes", "1048576", "-iters", "20", "-transport", t]) for t in columns]
    for n in range(a.rounds):
        for c in runs:
            print(f"waiting, round {n + 1} of {a.rounds}: {c.name}", file=sys.stderr)
            c.run()
    cells = [f"{statistics.median(c.figure(1 << 20, 'waiting_pct')):+.1f} %" for c in runs]
    return ["| 2 ranks | " + " | ".join(columns) + " |", "|---|---|---|",
            "| longer computation beside a waiting call | " + " | ".join(cells) + " |", "| *aim: at most* | 5 % | 5 % |"]


# The tables of docs/benchmarks.md: what differs from the options' defaults, and the aims.
SUITE = [
    {"sizes": "1KiB,1MiB,16MiB,64MiB", "private": True, "aims": {
        "limit / registered, both at best": ["", "", "", "0.8"],
        "registered / Open MPI": ["1.0", "0.25", "0.4", "0.25"], "registered / gloo": ["0.01", "0.06", "0.08", "0.15"],
        "private / Open MPI": ["1.0", "0.5", "0.6", "0.3"]}},
    {"nproc": 4, "sizes": "1KiB,1MiB,16MiB,64MiB", "peers": "openmpi", "aims": {"registered / Open MPI": ["1.0", "0.2", "0.25", "0.15"]}},
    {"dtype": "f16", "sizes": "512KiB,8MiB,32MiB", "peers": "gloo", "aims": {"registered / f32": ["0.65"] * 3, "registered / gloo": ["0.08"] * 3}},
    {"transport": "tcp", "sizes": "1KiB,64MiB", "aims": {"GradFusion / Open MPI": ["", "0.6"], "GradFusion / gloo": ["0.15", "0.7"]}},
    {"op": "broadcast,allgather,reducescatter", "sizes": "64MiB", "peers": "openmpi", "private": True, "aims": {"registered / Open MPI": ["0.6"]}},
]


def compare(a, folder):
    """Takes turns and returns the lines of a table for each operation."""
    out = []
    for op in a.op.split(","):
        all = contenders(a, op, folder)
        for n in range(a.rounds):
            for c in all:
                print(f"{op} {a.dtype}, {a.nproc} ranks, round {n + 1} of {a.rounds}: {c.name}", file=sys.stderr)
                c.run()
        out += table(a, op, all) + [""]
    return out


def machine():
    """What the tables were measured on."""
    names = [l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")] if os.path.exists("/proc/cpuinfo") else []
    return f"Seen on {os.cpu_count()} processors{', ' + names[0] if names else ''}:"


def write(path, lines):
    """Puts the lines between the marks of a Markdown file."""
    text = open(path).read()
    begin, end = (f"<!-- collectives: {w} -->\n" for w in ("begin", "end"))
    before, rest = text.split(begin)
    _, after = rest.split(end)
    with open(path, "w") as f:
        f.write(before + begin + "\n" + "\n".join(lines).strip() + "\n\n" + end + after)


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
    p.add_argument("--all", action="store_true", help="all tables of docs/benchmarks.md, about ten minutes")
    p.add_argument("--write", metavar="FILE", help="put them into this file, between its marks")
    a = p.parse_args()
    a.private, a.aims = True, {}
    with tempfile.TemporaryDirectory() as folder:
        if not a.all:
            lines = compare(a, folder)
        else:
            lines = [machine(), ""]
            for differing in SUITE:
                lines += compare(argparse.Namespace(**{**vars(a), "private": False, **differing}), folder)
            lines += waiting(a)
    print("\n" + "\n".join(lines))
    if a.write:
        write(a.write, lines)


if __name__ == "__main__":
    main()
