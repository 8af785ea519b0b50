#!/usr/bin/env python3
"""Draws the loss of trainings over their steps as SVG, and lists it as CSV, from
their run directories: curves.py OUT RUN RUN... writes OUT.svg and OUT.csv, with a
line and a column for each run, named after its directory."""
import json
import math
import os
import sys

WIDTH, HEIGHT, EDGE = 720, 320, 48
COLOURS = ("#1f6fb4", "#d1622b", "#3c8d40", "#7d4fa3")


def losses(run):
    with open(os.path.join(run, "metrics.jsonl")) as f:
        rows = [json.loads(line) for line in f]
    return [(r["step"], r["loss"]) for r in rows if "loss" in r and "step_ms" in r]


def height(loss):
    return math.log10(max(loss, 1e-9))


def table(out, runs):
    steps = sorted({s for _, curve in runs for s, _ in curve})
    by = [dict(curve) for _, curve in runs]
    with open(out, "w") as f:
        print(",".join(["step", *(name for name, _ in runs)]), file=f)
        for s in steps:
            if s == 1 or s % 5 == 0:
                print(",".join([str(s), *(f"{c[s]:.6g}" if s in c else "" for c in by)]), file=f)


def picture(out, runs):
    last = max(s for _, curve in runs for s, _ in curve)
    low, high = (f(height(v) for _, curve in runs for _, v in curve) for f in (min, max))
    low, high = math.floor(low), math.ceil(high)

    def at(step, log):
        return (EDGE + (WIDTH - 2 * EDGE) * step / last, HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * (log - low) / (high - low))

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for e in range(low, high + 1):
        x, y = at(0, e)
        parts.append(f'<path d="M{x:.1f} {y:.1f}H{WIDTH - EDGE}" stroke="#ddd"/><text x="{x - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{10.0 ** e:g}</text>')
    for s in range(0, last + 1, max(1, last // 5)):
        x, y = at(s, low)
        parts.append(f'<text x="{x:.1f}" y="{y + 18:.1f}" text-anchor="middle">{s}</text>')
    for i, (name, curve) in enumerate(runs):
        colour = COLOURS[i % len(COLOURS)]
        points = " ".join("%.1f,%.1f" % at(s, height(v)) for s, v in curve)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
        parts.append(f'<text x="{WIDTH - EDGE}" y="{EDGE + 16 * i}" text-anchor="end" fill="{colour}">{name}</text>')
    with open(out, "w") as f:
        f.write("\n".join([*parts, "</svg>", ""]))


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    out = sys.argv[1]
    runs = [(os.path.basename(os.path.normpath(run)), losses(run)) for run in sys.argv[2:]]
    table(out + ".csv", runs)
    picture(out + ".svg", runs)


if __name__ == "__main__":
    main()
