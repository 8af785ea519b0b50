#!/usr/bin/env python3
"""Trains over hosts that are network namespaces of this one, joined by a link
whose rate tc shapes, beside PyTorch and beside what the link allows. See
README.md."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from hosts import Hosts, bits, refuse_unless_possible

HERE = os.path.dirname(os.path.abspath(__file__))
PEER = os.path.join(HERE, "..", "peers", "train.py")
JOB = "resnet18"
PARAMS = 11173962  # which a rank sends once a step, when there are two
HEADERS = 0.956    # of a rate is left for values


def ours(hosts, a, layout, batch, steps, *more):
    """A run as it is shipped; rank 0's summary."""
    keys = [f"data.batch={batch * len(layout)}", "compute.threads=1", f"train.steps={steps}", *more]
    with tempfile.TemporaryDirectory() as folder:
        summary = os.path.join(folder, "summary.json")
        hosts.run(layout, [a.train, "run", "-config", f"bench/{JOB}.yaml", "-summary", summary, *(w for k in keys for w in ("-set", k))])
        with open(summary) as f:
            s = json.load(f)
    if s["params"] != PARAMS:
        sys.exit(f"training.py: {JOB} has {s['params']} parameters, not {PARAMS}")
    return s


def theirs(hosts, a, layout, batch, seconds):
    """DistributedDataParallel over the same link."""
    job = []
    for rank, h in enumerate(layout):
        job.append(hosts.spawn(h, [a.python, PEER, "--model", JOB, "--procs", str(len(layout)), "--threads", "1", "--batch", str(batch), "--seconds", str(seconds),
                                   "--rank", str(rank), "--address", "10.77.0.1", "--interface", hosts.device[h]]))
    said = [p.communicate(timeout=600) for p in job]
    for p, (_, err) in zip(job, said):
        if p.returncode != 0:
            sys.exit(f"training.py: PyTorch ended with {p.returncode}:\n{err}")
    return json.loads([line for line in said[0][0].splitlines() if line.startswith("{")][-1])


def per_second(s):
    return s["global_batch"] / s["step_ms_p50"] * 1e3


BYTES = {"f32": 4, "f16": 2, "bf16": 2, "int8": 260 / 256, "int4": 68 / 128}  # of a value


def wire_bytes(wire):
    if wire not in BYTES:
        sys.exit(f"training.py: no wire {wire} here; there are {', '.join(BYTES)}")
    return PARAMS * BYTES[wire]


def steps_for(a, rate, wire):
    """About a.seconds of steps."""
    step = max(0.1, wire_bytes(wire) * 8 / bits(rate))
    return max(11, int(a.seconds / step) + 3)


def peers(a):
    """Images a second beside PyTorch, in turn; medians of the rounds."""
    aims = {("f32", "1gbit"): 1.5, ("f32", "250mbit"): 1.1, ("f16", "1gbit"): 2.7, ("f16", "250mbit"): 2.1, ("int8", "250mbit"): 4}
    print(f"{JOB}, two hosts, {a.batch} images a rank and step, one thread each; medians of {a.rounds} in turn:\n")
    print("| link | wire | GradFusion, images/s | PyTorch, f32 | ratio (aim) | the link allows |\n|---|---|---|---|---|---|")
    for rate in a.rates.split(","):
        wires = a.wires.split(",")
        mine, kept, other = {w: [] for w in wires}, {w: [] for w in wires}, []
        with Hosts(rate, pinned=True) as hosts:
            for _ in range(a.rounds):
                other.append(theirs(hosts, a, "AB", a.batch, a.seconds)["per_sec"])
                for w in wires:
                    s = ours(hosts, a, "AB", a.batch, steps_for(a, rate, w), f"fusion.wire={w}")
                    mine[w].append(per_second(s))
                    kept[w].append(1 - s["bytes_saved"] / s["bytes_sent"])
        for w in wires:
            ratio = statistics.median(m / o for m, o in zip(mine[w], other))
            most = 2 * a.batch / (wire_bytes(w) * statistics.median(kept[w]) * 8 / bits(rate) / HEADERS)
            aim = aims.get((w, rate))
            print(f"| {rate} | {w} | {statistics.median(mine[w]):.1f} | {statistics.median(other):.1f} | {ratio:.2f}{f' ({aim})' if aim else ''} | {most:.1f} |", flush=True)


def alone(hosts, a, steps):
    """Milliseconds of a step of jobs of their own, one on each host at the same time: the computation."""
    with tempfile.TemporaryDirectory() as folder:
        job = []
        for h in "AB":
            keys = [f"data.batch={a.batch}", "compute.threads=1", f"train.steps={steps}"]
            job.append(hosts.spawn(h, [a.train, "run", "-config", f"bench/{JOB}.yaml", "-summary", os.path.join(folder, h), *(w for k in keys for w in ("-set", k))]))
        times = []
        for h, p in zip("AB", job):
            _, err = p.communicate(timeout=600)
            if p.returncode != 0:
                sys.exit(f"training.py: a job of its own ended with {p.returncode}:\n{err}")
            with open(os.path.join(folder, h)) as f:
                times.append(json.load(f)["step_ms_p50"])
    return max(times)


def overlap(a):
    """A step beside the larger of computation and communication, on links at which these are about equal."""
    print(f"{JOB}, two hosts, {a.batch} images a rank and step, one thread each; medians of {a.rounds} in turn:\n")
    print("| link | wire | computation | communication | the larger | step | of the larger (aim 1.1) | no fusion, no overlap | times slower (aim 1.6) |\n|---|---|---|---|---|---|---|---|---|")
    for pair in a.pairs.split(","):
        rate, wire = pair.split(":")
        rounds = []
        with Hosts(rate, pinned=True) as hosts:
            for _ in range(a.rounds):
                n, w = steps_for(a, rate, wire), f"fusion.wire={wire}"
                compute = alone(hosts, a, n)
                step = ours(hosts, a, "AB", a.batch, n, w)["step_ms_p50"]
                apart = ours(hosts, a, "AB", a.batch, n, w, "fusion.overlap=false")
                plain = ours(hosts, a, "AB", a.batch, n, w, "fusion.overlap=false", "fusion.threshold_mb=0.001", "fusion.first_mb=0.001")["step_ms_p50"]
                rounds.append((compute, apart["comm_ms"], max(compute, apart["comm_ms"]), step, step / max(compute, apart["comm_ms"]), plain, plain / step))
        m = [statistics.median(r[i] for r in rounds) for i in range(7)]
        print(f"| {rate} | {wire} | {m[0]:.0f} ms | {m[1]:.0f} ms | {m[2]:.0f} ms | {m[3]:.0f} ms | {m[4]:.2f} | {m[5]:.0f} ms | {m[6]:.2f} |", flush=True)


def stages(a):
    """Time in which messages between the stages hold a rank up, with activations in f32 and in f16, and on one
    host, and what it waits for the other stage's computation; of the jobs that name:keys say."""
    print(f"Two stages on two hosts, one thread each, comm_exposed_ms (bubble_ms); medians of {a.rounds} in turn:\n")
    print("| job | link | f32 | f16 | one host | f16 / f32 (aim 0.55) |\n|---|---|---|---|---|---|")
    for job in a.jobs.split(";"):
        name, *keys = job.split()
        keys += ["compute.threads=1", "parallel.pipeline=2"]
        for rate in a.rates.split(","):
            waits = {"f32": [], "f16": [], "one host": []}
            with Hosts(rate, pinned=True) as hosts:
                for _ in range(a.rounds):
                    for where, seen in waits.items():
                        seen.append(waited(hosts, a, name, where, keys))
            f32, f16, near = (tuple(statistics.median(w[i] for w in seen) for i in (0, 1)) for seen in waits.values())
            cells = " | ".join(f"{exposed:.1f} ms ({bubble:.0f})" for exposed, bubble in (f32, f16, near))
            print(f"| {name} | {rate} | {cells} | {f16[0] / f32[0]:.2f} |", flush=True)


def waited(hosts, a, name, where, keys):
    """What rank 0 waits for messages and for the other stage, in milliseconds of a step."""
    with tempfile.TemporaryDirectory() as folder:
        summary = os.path.join(folder, "summary.json")
        keys = [*keys, f"parallel.activation_wire={'f16' if where == 'f16' else 'f32'}", "observe.run_dir=" + os.path.join(folder, "run")]
        command = [a.train, "run", "-config", f"bench/{name}.yaml", "-summary", summary, *(w for k in keys for w in ("-set", k))]
        if where == "one host":
            subprocess.run([*command, "-nproc", "2"], check=True, capture_output=True)
        else:
            hosts.run("AB", command)
        with open(summary) as f:
            s = json.load(f)
        return s["comm_exposed_ms"], s["bubble_ms"]


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("what", choices=("peers", "overlap", "stages"))
    p.add_argument("--train", default=os.path.join(HERE, "..", "..", "bin", "train"))
    p.add_argument("--python", default="/usr/bin/python3", help="the interpreter that has PyTorch")
    p.add_argument("--batch", type=int, default=8, help="images a rank and step")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=6, help="of timed steps in each run")
    p.add_argument("--rates", default="1gbit,250mbit")
    p.add_argument("--wires", default="f32,f16,int8")
    p.add_argument("--pairs", default="2400mbit:f32,1200mbit:f16,700mbit:int8", help="rate:wire of overlap")
    p.add_argument("--jobs", default="mlp data.train_samples=8192 data.batch=4096 train.micro_batch=512 train.steps=20;gpt train.micro_batch=1", help="of stages: a configuration of bench/ and its keys, several with ;")
    a = p.parse_args()
    a.train = os.path.abspath(a.train)
    if not os.path.exists(a.train):
        sys.exit(f"training.py: no {a.train}; make build makes it")
    refuse_unless_possible()
    {"peers": peers, "overlap": overlap, "stages": stages}[a.what](a)


if __name__ == "__main__":
    main()
