"""Which basis: what `project: auto` loses to the best of three that are named.

Run with ``python -m benchmarks.bench_basis [--set SET] [--replicates R]``; it needs the
phonemes (CURVOTE_DATA_MIRROR). What volunteers' evidence tries first, and how careful
it is, was chosen on ``laws`` (`benchmarks.curve_laws`, whose noise is drawn by its
normal law) and ``pairs`` of phonemes, pipelines that really run; ``judged`` are the two
pairs of docs/choosing.md. Errors in percent, protocol `auto`.
Fails where, on ``judged``, `auto` errs ``MOST`` points more than the best of the three.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.bench_size import learnt
from benchmarks.curve_laws import DEVIATIONS, GRID, LAWS, Law
from benchmarks.history import record
from curvote.curves import basis, fpca
from curvote.messages.evidence import WIDTH, Choice

MOST = 1.0
EPSILONS = (0.5, 1.0, 2.0)
NAMED = {"fourier 5": ("fourier", 5), "fourier 11": ("fourier", 11)}
NAMED |= {"fpca 12": (basis.FPCA, 12)}
SETS = {
    "judged": [("iy", "sh"), ("aa", "ao")],
    "pairs": [
        *[("sh", "dcl"), ("iy", "dcl"), ("sh", "aa"), ("iy", "aa"), ("dcl", "aa")],
        *[("sh", "ao"), ("iy", "ao"), ("dcl", "ao")],
    ],
    "laws": LAWS,
}
# Volunteers, training clients and tested ones, where there are so many; else fewer.
CLIENTS = {"public": 50, "train": 1450, "test": 535}
FEWER = {"public": 50, "train": 1200, "test": 350}
MANY = {("iy", "sh"), ("iy", "ao")}
ROW = re.compile(r"^(.+?) {2,}auto +" + r"([0-9.]+) ± [0-9.]+ *" * len(EPSILONS))


def run_pair(pair: tuple[str, str], replicates: int) -> dict[str, list[float]]:
    """Return the errors of each setting by epsilon, of a pipeline of its own."""
    volunteers = {"centre": "volunteers", "scale": "volunteers"}
    named = {"coordinates": "orthonormal", "rescale": "standard", **volunteers}
    settings = [
        {"name": "auto", "label": label, "project": {"basis": b, "size": d, **named}}
        for label, (b, d) in NAMED.items()
    ]
    settings.append({"name": "auto", "label": "auto", "project": {"basis": "auto"}})
    negative, positive = pair
    source = {"name": "phonemes", "positive": positive, "negative": negative}
    pipeline = {
        "source": source | {"groups": "speaker"},
        "clients": CLIENTS if pair in MANY else FEWER,
        "project": "auto",
        "protocols": settings,
        "epsilon": [*EPSILONS],
        "replicates": replicates,
    }
    with TemporaryDirectory() as folder:
        document = json.dumps({"pipelines": {"basis": pipeline}})
        Path(folder, "pipelines.yaml").write_text(document, encoding="utf-8")
        command = [sys.executable, "-m", "curvote.cli", "run", "basis"]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=True
        )
    rows = (ROW.match(line) for line in done.stdout.splitlines())
    return {row[1]: [*map(float, row.groups()[1:])] for row in rows if row}


def run_law(law: Law, replicates: int, n: int = 1450) -> dict[str, list[float]]:
    """Return the same for a law, by the decoders of `auto`."""
    curves = DEVIATIONS[law.covariance][:, None] * law.functions()
    errors: dict[str, list[list[float]]] = {}
    for replicate in range(replicates):
        rng = np.random.default_rng([replicate, 3])
        scores, chance = law.draw(rng, 50 + n + 2000)
        x, signs = scores @ curves, np.where(rng.random(len(chance)) < chance, 1, -1)
        public, places = x[:50], (signs[:50] + 1) // 2
        for epsilon in EPSILONS:
            choice = Choice("auto", WIDTH, "standard", 5.9 / (n * epsilon**2))
            chosen, padded = choice.choose(public, places, GRID)
            tried = {"auto": (padded, choice.constants, chosen.startswith(basis.FPCA))}
            for label, (name, d) in NAMED.items():
                own = Choice(name, d, "standard", choice.noise)
                common = name == basis.FPCA
                made = (
                    fpca.principal_projection(public, d, GRID)
                    if common
                    else basis.orthonormal(basis.projection(name, d, GRID))
                )
                tried[label] = made, own.constants, common
            for label, (made, constants, common) in tried.items():
                centre, scale = constants(made.apply(public), common)
                z = (made.apply(x) - centre) / scale
                noise = np.random.default_rng([replicate, 5])
                coef, constant = learnt(noise, z[50:-2000], signs[50:-2000], epsilon)
                wrong = np.sign(z[-2000:] @ coef + constant) != signs[-2000:]
                errors.setdefault(f"{label} {epsilon}", []).append([100 * wrong.mean()])
    means = {name: float(np.mean(values)) for name, values in errors.items()}
    return {
        label: [means[f"{label} {epsilon}"] for epsilon in EPSILONS]
        for label in (*NAMED, "auto")
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", choices=[*SETS], default="judged")
    parser.add_argument("--replicates", type=int, default=50)
    given = parser.parse_args()
    worst = -np.inf
    print("| | setting | " + " | ".join(f"epsilon {e:g}" for e in EPSILONS) + " |")
    print("| --- | --- |" + " --- |" * len(EPSILONS))
    for subject in SETS[given.set]:
        is_law = isinstance(subject, Law)
        run = run_law if is_law else run_pair
        found = run(subject, given.replicates)  # type: ignore[operator]  # by its set
        title = subject.name if is_law else "/".join(subject)
        for label, values in found.items():
            words = " | ".join(f"{value:.1f}" for value in values)
            print(f"| {title} | {label} | {words} |", flush=True)
        named = np.min([found[label] for label in NAMED], axis=0)
        worst = max(worst, float((np.array(found["auto"]) - named).max()))
    lost = {"points more than the best of three": worst}
    bounds = dict.fromkeys(lost, MOST) if given.set == "judged" else {}
    return record("basis", {}, sizes=lost, bounds=bounds)


if __name__ == "__main__":
    sys.exit(main())
