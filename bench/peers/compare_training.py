#!/usr/bin/env python3
"""Trains the jobs of configs/bench with GradFusion and with PyTorch in turn and
prints a Markdown table of medians and ratios. See README.md."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
JOBS = {"resnet18": 32, "resnet50": 8, "mlp": 64, "gpt": 8, "cnn": 64, "resnet20": 64}  # samples a step and process

# What the project holds itself to, as ratios to PyTorch: speed by layout at
# least, memory and start at most. Threads and ranks are compared with itself.
SPEED = {"1x1": {"resnet18": 2.5, "resnet50": 1.5, "mlp": 1.5, "gpt": 1.2, "cnn": 2.5, "resnet20": 2.2},
         "2x1": {"resnet18": 2.7, "resnet50": 1.5, "mlp": 2.3, "gpt": 1.25, "cnn": 2.3}}
MEMORY = {"resnet18": 0.7, "resnet50": 0.7, "mlp": 0.4, "gpt": 0.6, "cnn": 0.4, "resnet20": 0.5}
START, THREADS, RANKS = 0.3, 1.85, {"mlp": 0.9}
BEGIN, END = "<!-- bench-peers begin -->", "<!-- bench-peers end -->"


def run(command, folder, first):
    """Runs command and returns its lines, and the seconds until one begins with or holds first."""
    start = time.time()
    p = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines, seconds = [], None
    for line in p.stdout:
        lines.append(line)
        if seconds is None and first in line:
            seconds = time.time() - start
    if p.wait() != 0:
        sys.exit(f"{' '.join(command)} ended with {p.returncode}:\n{''.join(lines[-20:])}")
    return lines, seconds


class Layout:
    """So many processes of so many threads."""

    def __init__(self, text):
        self.text = text
        procs, _, threads = text.partition("x")
        self.procs, self.threads = int(procs), int(threads)

    def __str__(self):
        def plural(n, noun):
            return f"{n} {noun}{'es' if noun == 'process' else 's'}" if n > 1 else f"1 {noun}"
        return f"{plural(self.procs, 'process')} x {plural(self.threads, 'thread')}"


class Ours:
    name = "GradFusion"

    def __init__(self, a):
        self.train, self.seconds, self.steps = os.path.abspath(a.train), a.seconds, {}

    def command(self, job, layout, summary, steps):
        set = [f"data.batch={JOBS[job] * layout.procs}", f"compute.threads={layout.threads}"]
        if steps:
            set.append(f"train.steps={steps}")
        return [self.train, "-config", f"bench/{job}.yaml", "-nproc", str(layout.procs), "-summary", summary, *(w for s in set for w in ("-set", s))]

    def run(self, job, layout, first=True):
        """A run as it is shipped gives the speed, a run of one step the time to it."""
        with tempfile.TemporaryDirectory() as folder:
            summary = os.path.join(folder, "summary.json")
            steps = self.steps.get((job, layout.procs, layout.threads))
            run(self.command(job, layout, summary, steps), folder, "INFO step")
            with open(summary) as f:
                s = json.load(f)
            self.steps[job, layout.procs, layout.threads] = max(int(self.seconds * 1e3 / s["step_ms_p50"]) + 3, 11)
            unit = "tokens" if s["tokens_per_sec"] else "samples"
            each = s["tokens_per_sec"] / s["samples_per_sec"] if s["tokens_per_sec"] else 1
            begun = run(self.command(job, layout, summary, 1), folder, "INFO step")[1] if first else None
        return {"per_sec": s["global_batch"] * each / s["step_ms_p50"] * 1e3, "rss": s["peak_rss_mb"], "first": begun, "unit": unit,
                "params": s["params"], "loss": s["loss_first"]}

    def independent(self, job, layout):
        """Runs the layout's processes at the same time as jobs of their own; returns the sum of their speeds."""
        alone, out = Layout(f"1x{layout.threads}"), []
        threads = [threading.Thread(target=lambda: out.append(self.run(job, alone, first=False)["per_sec"])) for _ in range(layout.procs)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if len(out) != layout.procs:
            sys.exit("a job of its own failed")
        return sum(out)


class PyTorch:
    name = "PyTorch"

    def __init__(self, a):
        self.seconds, self.python, self.more = a.seconds, a.python, a.peer_flags.split()

    def run(self, job, layout):
        command = [self.python, os.path.join(HERE, "train.py"), "--model", job, "--procs", str(layout.procs), "--threads", str(layout.threads),
                   "--seconds", str(self.seconds), *self.more]
        lines, first = run(command, None, "first")
        r = json.loads([line for line in lines if line.startswith("{")][-1])
        return {"per_sec": r["per_sec"], "rss": r["peak_rss_mb"], "first": first, "unit": r["unit"], "params": r["params"], "loss": r["loss_first"],
                "about": f"PyTorch {r['torch']} with {r['blas']} ({r['gemm_gflops']:.0f} GFLOP/s)"}


def median(rounds, key):
    return statistics.median(r[key] for r in rounds)


def ratio(ours, theirs, key):
    """Median of the rounds' ratios, so that a machine that drifts favours nobody."""
    return statistics.median(o[key] / t[key] for o, t in zip(ours, theirs))


def short(v):
    return f"{v:.0f}" if v >= 100 else f"{v:.3g}"


def measure(a, contenders):
    """Takes turns between the contenders, and in each round between the layouts,
    which are compared too; returns the rounds of each job and layout."""
    rows = {}
    layouts = [Layout(text) for text in a.layouts.split(",")]
    for job in a.models.split(","):
        for layout in layouts:
            rows[job, layout.text] = {c.name: [] for c in contenders}, []
        for n in range(a.rounds):
            for layout in layouts:
                rounds, sums = rows[job, layout.text]
                for c in contenders if n % 2 == 0 else contenders[::-1]:
                    print(f"{job}, {layout}, round {n + 1} of {a.rounds}: {c.name}", file=sys.stderr, flush=True)
                    rounds[c.name].append(c.run(job, layout))
                if a.independent and layout.procs > 1:
                    sums.append(contenders[0].independent(job, layout))
        params = {r["params"] for layout in layouts for c in rows[job, layout.text][0].values() for r in c}
        if len(params) != 1:
            sys.exit(f"{job}: the contenders have different numbers of parameters: {params}")
    return rows


def table(a, rows, contenders):
    out = []
    if len(contenders) == 1:
        out += ["| job | layout | GradFusion, per second | peak RSS, MB | start to first step, s |", "|---|---|---|---|---|"]
    else:
        out += ["| job | layout | GradFusion, per second | PyTorch | ratio | peak RSS, MB | PyTorch | ratio | start to first step, s | PyTorch | ratio |",
                "|---|---|---|---|---|---|---|---|---|---|---|"]
    for (job, layout), (rounds, _) in rows.items():
        ours = rounds["GradFusion"]
        aims = {"per_sec": SPEED.get(layout, {}).get(job), "rss": MEMORY[job] if layout == "1x1" else None, "first": START}
        cells = [job, str(Layout(layout)), f"{short(median(ours, 'per_sec'))} {ours[0]['unit']}"]
        if len(contenders) == 1:
            cells += [short(median(ours, "rss")), f"{median(ours, 'first'):.2f}"]
        else:
            theirs = rounds["PyTorch"]
            for i, (key, form) in enumerate((("per_sec", short), ("rss", short), ("first", lambda v: f"{v:.2f}"))):
                if i:
                    cells.append(form(median(ours, key)))
                cells += [form(median(theirs, key)), aimed(ratio(ours, theirs, key), aims[key])]
        out.append("| " + " | ".join(cells) + " |")
    return out + speedups(rows)


def aimed(value, aim):
    return f"{value:.2f} ({aim})" if aim else f"{value:.2f}"


def speedups(rows):
    """GradFusion against itself: more threads, and ranks against jobs of their own."""
    out = []
    one = "1x1"
    for (job, layout), (rounds, sums) in rows.items():
        notes = []
        if layout != one and (job, one) in rows:
            times = ratio(rounds["GradFusion"], rows[job, one][0]["GradFusion"], "per_sec")
            notes.append(f"{aimed(times, THREADS if layout == '1x2' else None)} times one process of one thread")
        if sums:
            shares = [r["per_sec"] / s for r, s in zip(rounds["GradFusion"], sums)]
            note = f"{aimed(statistics.median(shares), RANKS.get(job, 0.97))} of as many jobs of their own at the same time"
            if (job, one) in rows:
                times = statistics.median(s / r["per_sec"] for s, r in zip(sums, rows[job, one][0]["GradFusion"]))
                note += f", which make {times:.2f} times one: what the machine gives"
            notes.append(note)
        if notes:
            out.append(f"- {job}, {Layout(layout)}: " + ", ".join(notes))
    return [""] + out if out else []


def write(path, text):
    """Puts text between the marks of a page."""
    with open(path) as f:
        page = f.read()
    if BEGIN not in page or END not in page:
        sys.exit(f"{path} has no lines {BEGIN} and {END}")
    head, rest = page.split(BEGIN, 1)
    with open(path, "w") as f:
        f.write(head + BEGIN + "\n" + text + "\n" + END + rest.split(END, 1)[1])


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--train", default="bin/train", help="the program")
    p.add_argument("--models", default=",".join(JOBS), help="jobs with commas between them")
    p.add_argument("--layouts", default="1x1,1x2,2x1", help="processes x threads, with commas between them")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=8, help="of timed steps in each run")
    p.add_argument("--peers", default="pytorch", choices=["pytorch", "none"])
    p.add_argument("--python", default="/usr/bin/python3" if os.path.exists("/usr/bin/python3") else "python3", help="the interpreter that has PyTorch")
    p.add_argument("--peer-flags", default="", help="more flags for train.py")
    p.add_argument("--independent", action="store_true", help="also run the processes as jobs of their own, at the same time")
    p.add_argument("--write", metavar="PAGE", help="put the table into this page, between its marks")
    a = p.parse_args()
    for job in a.models.split(","):
        if job not in JOBS:
            p.error(f"there is no job {job}; there are {', '.join(JOBS)}")
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0
    if busy > 0.3:
        print(f"Something else runs here (load {busy:.1f} on {os.cpu_count()} cores): the figures will not be worth much.", file=sys.stderr)
    contenders = [Ours(a)] + ([PyTorch(a)] if a.peers == "pytorch" else [])
    rows = measure(a, contenders)
    lines = table(a, rows, contenders)
    about = [r["about"] for rounds, _ in rows.values() for r in rounds.get("PyTorch", [])]
    if about:
        lines += ["", f"In parentheses: the aim, at least for speed, at most for memory and start. Peer: {about[0]}; median of {a.rounds} in turn, {os.cpu_count()} cores."]
    print("\n".join(lines))
    if a.write:
        write(a.write, "\n".join(lines))


if __name__ == "__main__":
    main()
