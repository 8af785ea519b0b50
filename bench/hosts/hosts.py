#!/usr/bin/env python3
"""Runs train on two hosts that are network namespaces of this one, joined by a
shaped link. See README.md."""
import argparse
import ctypes
import json
import os
import re
import secrets
import signal
import shutil
import subprocess
import sys
import tempfile
import time


def refuse_unless_possible():
    for tool in ("ip", "tc"):
        if not shutil.which(tool):
            sys.exit(f"hosts.py: {tool} is not installed (package iproute2); nothing was tested")
    if os.geteuid() != 0:
        sys.exit("hosts.py: network namespaces need root; nothing was tested")


def end_on_signals():
    """Makes signals that would end this process at once end it as an error does, which cleans up."""
    def end(number, _):
        for n in SIGNALS:
            signal.signal(n, signal.SIG_IGN)  # once is enough
        sys.exit(128 + number)
    for n in SIGNALS:
        signal.signal(n, end)


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def die_with_parent():
    """Run in a process that is started: the kernel kills it when this one is gone, whatever the reason."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def clean_up():
    """Removes the hosts of processes that are gone and could not, with what still runs on them."""
    for line in ip("netns", "list").splitlines():
        name = line.split()[0]
        if (m := re.fullmatch(r"g[fs](\d+)[A-D]?", name)) and not os.path.exists(f"/proc/{m[1]}"):
            for pid in ip("netns", "pids", name, check=False).split():
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass
            ip("netns", "del", name, check=False)


def ip(*args, check=True):
    return subprocess.run(["ip", *args], check=check, capture_output=True, text=True).stdout


class Hosts:
    """Hosts A and B, 10.77.0.1 and 10.77.0.2, over a link of a rate."""

    def __init__(self, rate, pinned=False):
        self.pinned = pinned  # a host has one core of its own
        self.name = {h: f"gf{os.getpid()}{h}" for h in "AB"}
        self.device = {h: f"gfv{h}" for h in "AB"}
        self.rate, self.running = rate, []

    def __enter__(self):
        end_on_signals()
        clean_up()
        try:
            self.connect()
        except subprocess.CalledProcessError as e:
            self.__exit__()
            sys.exit(f"{os.path.basename(sys.argv[0])}: {' '.join(e.cmd)}: {e.stderr.strip()}; nothing was tested")
        return self

    def connect(self):
        """Makes the hosts and the link."""
        for name in self.namespaces():
            ip("netns", "add", name)
        ip("link", "add", self.device["A"], "netns", self.name["A"], "type", "veth", "peer", "name", self.device["B"], "netns", self.name["B"])
        for i, h in enumerate("AB"):
            self.address(i, h)
            if self.rate != "none":
                self.shape(self.name[h], self.device[h])

    def namespaces(self):
        return list(self.name.values())

    def address(self, i, h):
        ip("-n", self.name[h], "addr", "add", f"10.77.0.{i + 1}/24", "dev", self.device[h])
        ip("-n", self.name[h], "link", "set", self.device[h], "up")
        ip("-n", self.name[h], "link", "set", "lo", "up")

    def shape(self, name, device):
        ip("netns", "exec", name, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", self.rate, "burst", "256k", "latency", "50ms")

    def __exit__(self, *_):
        for p in self.running:
            if p.poll() is None:
                p.kill()
                p.wait()
        for name in self.namespaces():
            ip("netns", "del", name, check=False)

    def down(self):
        ip("-n", self.name["A"], "link", "set", self.device["A"], "down")

    def up(self):
        ip("-n", self.name["A"], "link", "set", self.device["A"], "up")

    def sent(self):
        """Bytes that each host has sent across."""
        return {h: json.loads(ip("-n", self.name[h], "-s", "-j", "link", "show", self.device[h]))[0]["stats64"]["tx"]["bytes"] for h in "AB"}

    def spawn(self, h, command, environ=None, folder=None, out=subprocess.PIPE):
        """Starts a process on host h; its errors go where its output goes, if that is a file."""
        if self.pinned:
            command = ["taskset", "-c", str("AB".index(h) % os.cpu_count()), *command]
        p = subprocess.Popen(["ip", "netns", "exec", self.name[h], *command], env=environ, cwd=folder, text=True,
                             stdout=out, stderr=subprocess.STDOUT if folder else subprocess.PIPE, preexec_fn=die_with_parent)
        self.running.append(p)
        return p

    def start(self, layout, command, folder=None):
        """Starts one process for each letter of layout, on the host that it names."""
        token, job = secrets.token_hex(8), []
        for rank, h in enumerate(layout):
            environ = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(len(layout)), "LOCAL_RANK": str(layout[:rank].count(h)),
                       "LOCAL_WORLD_SIZE": str(layout.count(h)), "MASTER_ADDR": "10.77.0.1", "MASTER_PORT": "29417", "GRADFUSION_TOKEN": token}
            out = open(os.path.join(folder, f"rank-{rank}.txt"), "w") if folder else subprocess.PIPE
            job.append(self.spawn(h, command, environ, folder, out))
            if folder:
                out.close()
        return job

    def run(self, layout, command):
        """Runs a job to its end and returns what rank 0 said on both streams."""
        job = self.start(layout, command)
        said = [p.communicate(timeout=600) for p in job]
        for rank, p in enumerate(job):
            if p.returncode != 0:
                sys.exit(f"hosts.py: rank {rank} of {layout} ended with {p.returncode}:\n{said[rank][1]}")
        return said[0]


def mib(text):
    return int(text) << 20


def measure(hosts, train, layout, algorithm, size, iters):
    """Bytes that A sends across in a call, and the call's result."""
    def once(n):
        before = hosts.sent()
        out, err = hosts.run(layout, [train, "bench", "-sizes", str(size), "-algorithm", algorithm, "-iters", str(n), "-warmup", "1", "-json"])
        after = hosts.sent()
        result = json.loads(out)
        if not result["correct"]:
            sys.exit(f"hosts.py: a wrong result: {out}")
        return after["A"] - before["A"], result
    few, _ = once(2)
    many, result = once(2 + iters)
    return (many - few) / iters, result


def bits(rate):
    number, unit = re.fullmatch(r"(\d+)([mg])bit", rate).groups()
    return int(number) * {"m": 10**6, "g": 10**9}[unit]


def bench(a):
    size = mib(a.mib)
    rows, seen = [], {}
    with Hosts(a.rate) as hosts:
        print(f"all-reduce of {a.mib} MiB f32, two hosts over {a.rate}\n")
        print("| ranks | algorithm | transport | sent by each host, of the vector | time (best) | of the ring ABAB's |\n|---|---|---|---|---|---|")
        for layout, algorithm in (("ABAB", "ring"), ("AABB", "ring"), ("ABAB", "hierarchical"), ("AABB", "hierarchical"), ("ABAB", "auto"), ("AABB", "auto")):
            sent, r = measure(hosts, a.train, layout, algorithm, size, a.iters)
            seen[layout, algorithm] = sent, r["lat_us_p50"]
            base = seen["ABAB", "ring"]
            print(f"| {layout} | {r['algorithm']}{' (auto)' if algorithm == 'auto' else ''} | {r['transport']} | {sent / size:.3f} | {r['lat_us_p50'] / 1e3:.0f} ms ({r['lat_us_best'] / 1e3:.0f} ms) | {r['lat_us_p50'] / base[1]:.2f} |", flush=True)
        if a.rate != "none":
            print(f"\n| 2 ranks, AB | time (best) | 2(n-1)/n x bytes / rate | share (best) |\n|---|---|---|---|")
            for algorithm in ("ring", "auto"):
                _, r = measure(hosts, a.train, "AB", algorithm, size, a.iters)
                bound = size * 8 / bits(a.rate) * 1e3
                print(f"| {r['algorithm']} | {r['lat_us_p50'] / 1e3:.1f} ms ({r['lat_us_best'] / 1e3:.1f} ms) | {bound:.1f} ms | {bound / (r['lat_us_p50'] / 1e3):.3f} ({bound / (r['lat_us_best'] / 1e3):.3f}) |", flush=True)


def fingerprint(summary):
    with open(summary) as f:
        return json.load(f)["state_sha256"]


def training(train, folder, *more):
    keys = ["data.name=digits", "train.deterministic=world", "train.micro_batch=16", "observe.run_dir=" + os.path.join(folder, "run"), *more]
    return [train, "run", "-config", "mlp.yaml", *[word for key in keys for word in ("-set", key)]]


def equal_bits(hosts, a):
    """A training of 4 ranks gives the same bits on one host and on two."""
    with tempfile.TemporaryDirectory() as folder:
        def steps(name):
            return training(a.train, folder, "train.steps=30", "train.epochs=1") + ["-summary", os.path.join(folder, name)]
        subprocess.run(steps("one") + ["-nproc", "4"], check=True, capture_output=True)
        want = fingerprint(os.path.join(folder, "one"))
        for layout in ("AABB", "ABAB", "ABBB", "AB"):
            _, said = hosts.run(layout, steps(layout))
            got = fingerprint(os.path.join(folder, layout))
            if got != want:
                sys.exit(f"hosts.py: {layout} gives {got}, one host {want}")
            if "2 hosts over " + ("tcp" if layout == "AB" else "shm+tcp") not in " ".join(said.split()):
                sys.exit(f"hosts.py: {layout} does not say what it runs over:\n{said}")
            print(f"{layout}: state_sha256 {got[:16]}... as on one host", flush=True)


def wait_for(path, text, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with open(path) as f:
            if text in f.read():
                return
        time.sleep(0.05)
    with open(path) as f:
        sys.exit(f"hosts.py: no {text!r} in {seconds} s of\n{f.read()}")


def failures(hosts, a):
    """Every survivor of a failure ends with code 3 and names a peer, in time."""
    timeout = 4
    for what, layout, victims in (("kill -9", "AABB", [3]), ("kill -9", "AABB", [0]), ("kill -9", "ABAB", [2]), ("SIGSTOP", "AABB", [1]), ("link down", "AABB", [])):
        with tempfile.TemporaryDirectory() as folder:
            job = hosts.start(layout, training(a.train, folder, "train.epochs=100000", "observe.log_every=1", "observe.all_ranks=true", f"collective.timeout={timeout}s", "collective.heartbeat=500ms"), folder)
            wait_for(os.path.join(folder, "rank-0.txt"), "INFO step", 60)
            started = time.monotonic()
            for v in victims:
                job[v].send_signal(signal.SIGKILL if what == "kill -9" else signal.SIGSTOP)
            if what == "link down":
                hosts.down()
            for rank, p in enumerate(job):
                if rank in victims:
                    continue
                try:
                    code = p.wait(timeout + 3)
                except subprocess.TimeoutExpired:
                    code = None
                with open(os.path.join(folder, f"rank-{rank}.txt")) as f:
                    said = " ".join(f.read().split())
                named = re.search(r"peer \d|rank \d", said[said.rfind("train: "):])
                if code != 3 or not named or any(f"rank {v}" not in said and f"peer {v}" not in said for v in victims):
                    sys.exit(f"hosts.py: after {what} of {victims or 'the link'}, rank {rank} of {layout} ended with {code}:\n{said[-2000:]}")
            took = time.monotonic() - started
            for v in victims:
                job[v].kill()
                job[v].wait()
            hosts.up()
            print(f"{layout}, {what} of {'rank ' + str(victims[0]) if victims else 'the link'}: every survivor ended with code 3 within {took:.1f} s", flush=True)


def check(a):
    with Hosts(a.rate) as hosts:
        equal_bits(hosts, a)
        failures(hosts, a)
    print("all as it should be")


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("what", choices=("bench", "check"))
    p.add_argument("--train", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bin", "train"))
    p.add_argument("--rate", default="1gbit", help="of the link, as 250mbit; none: unshaped")
    p.add_argument("--mib", default="64", help="size of the vector")
    p.add_argument("--iters", type=int, default=8)
    a = p.parse_args()
    a.train = os.path.abspath(a.train)
    if not os.path.exists(a.train):
        sys.exit(f"hosts.py: no {a.train}; make build makes it")
    refuse_unless_possible()
    {"bench": bench, "check": check}[a.what](a)


if __name__ == "__main__":
    main()
