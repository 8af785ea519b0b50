#!/usr/bin/env python3
"""Trains over four hosts with two ranks each, all of them network namespaces of this
host behind one switch: first as a job comes that knows nothing, then with one thing
after another put right. See README.md."""
import argparse
import json
import os
import sys
import tempfile

from hosts import Hosts, ip, refuse_unless_possible

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = "ABCD"


class Star(Hosts):
    """Hosts A to D, 10.77.0.1 to 10.77.0.4, each with a link of a rate to a switch."""

    def __init__(self, rate):
        self.pinned, self.rate, self.running = False, rate, []
        self.name = {h: f"gs{os.getpid()}{h}" for h in NAMES}
        self.device = {h: f"gsv{h}" for h in NAMES}
        self.switch = f"gs{os.getpid()}"

    def namespaces(self):
        return [*super().namespaces(), self.switch]

    def connect(self):
        for name in self.namespaces():
            ip("netns", "add", name)
        ip("-n", self.switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", self.switch, "link", "set", "bridge", "up")
        for i, h in enumerate(NAMES):
            port = f"to{h}"
            ip("link", "add", self.device[h], "netns", self.name[h], "type", "veth", "peer", "name", port, "netns", self.switch)
            self.address(i, h)
            ip("-n", self.switch, "link", "set", port, "up")
            ip("-n", self.switch, "link", "set", port, "master", "bridge")
            for name, device in ((self.name[h], self.device[h]), (self.switch, port)):  # both ways
                self.shape(name, device)


APART = ("fusion.overlap=false", "fusion.threshold_mb=0.001", "fusion.first_mb=0.001")
STAGES = (
    ("baseline: ranks dealt out one by one, ring, every tensor by itself", "ABCDABCD", ("collective.algorithm=ring", *APART)),
    ("topology: the ranks of a host side by side, hierarchical", "AABBCCDD", ("collective.algorithm=hierarchical", *APART)),
    ("communication parameters: by the measured links, f16 across hosts", "AABBCCDD", ("fusion.wire=f16", "fusion.wire_scope=across-hosts", *APART)),
    ("fusion and overlap", "AABBCCDD", ("fusion.wire=f16", "fusion.wire_scope=across-hosts")),
)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--train", default=os.path.join(HERE, "..", "..", "bin", "train"))
    p.add_argument("--job", default="resnet18", help="a configuration of bench/")
    p.add_argument("--batch", type=int, default=2, help="samples a rank and step")
    p.add_argument("--steps", type=int, default=10)
    p.add_argument("--rate", default="1gbit")
    a = p.parse_args()
    train = os.path.abspath(a.train)
    if not os.path.exists(train):
        sys.exit(f"staged.py: no {train}; make build makes it")
    refuse_unless_possible()
    print(f"{a.job}, four hosts of two ranks, {a.rate} each, {a.batch} samples a rank and step, {a.steps} steps:\n")
    print("| | step | of the baseline | exposed communication |\n|---|---|---|---|")
    first = None
    with Star(a.rate) as hosts, tempfile.TemporaryDirectory() as folder:
        for title, layout, more in STAGES:
            summary = os.path.join(folder, "summary.json")
            keys = (f"data.batch={a.batch * len(layout)}", "compute.threads=1", f"train.steps={a.steps}", "observe.run_dir=", *more)
            hosts.run(layout, [train, "run", "-config", f"bench/{a.job}.yaml", "-summary", summary, *(w for k in keys for w in ("-set", k))])
            with open(summary) as f:
                s = json.load(f)
            first = first or s["step_ms_p50"]
            print(f"| {title} | {s['step_ms_p50']:.0f} ms | {s['step_ms_p50'] / first:.2f} | {s['comm_exposed_ms']:.0f} ms |", flush=True)


if __name__ == "__main__":
    main()
