"""Time the exact samplers against OpenDP's integer Laplace, side by side.

OpenDP needs no part of curvote's environment, so it lives in its own, and this script
runs itself there: that run imports neither curvote nor numpy.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

DRAWS = 1_000_000
EPSILON = 1
# curvote's grid at epsilon 1: the range [-1, 1] is 2^21 steps, so is the scale.
SCALE = float(2**21 // EPSILON)
ENVIRONMENT = Path(".venv-bench/bin/python")
REQUIREMENTS = Path("benchmarks/requirements-opendp.txt")
TARGET_SECONDS, TARGET_RATIO = 0.5, 10


def median_seconds(call: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def time_curvote(repeats: int) -> dict[str, float]:
    import numpy as np

    from curvote.entropy import SystemEntropy
    from curvote.mechanisms import make

    laplace, response = (make(n, epsilon=EPSILON) for n in ("laplace", "binary_rr"))
    values, labels, entropy = np.zeros(DRAWS), np.ones(DRAWS), SystemEntropy()
    return {
        "curvote laplace": median_seconds(
            lambda: laplace.randomize(values, entropy), repeats
        ),
        "curvote binary_rr": median_seconds(
            lambda: response.randomize(labels, entropy), repeats
        ),
    }


def time_opendp(repeats: int) -> dict[str, float]:
    """Time the draws, and apart from them the way of a list through the library."""
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    noise = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=SCALE)
    through = dp.t.make_identity(domain, dp.symmetric_distance())
    values = [0] * DRAWS
    conversion = median_seconds(lambda: through(values), repeats)
    draws = median_seconds(lambda: noise(values), repeats)
    return {"opendp laplace": draws - conversion, "opendp conversion": conversion}


def ask_opendp(python: Path, repeats: int) -> dict[str, float]:
    command = [str(python), __file__, "--only-opendp", "--repeats", str(repeats)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    seconds: dict[str, float] = json.loads(done.stdout)
    return seconds


def print_table(seconds: dict[str, float]) -> bool:
    """Print what was measured; return whether the targets were met."""
    own = seconds["curvote laplace"]
    print(f"{DRAWS:,} draws, epsilon {EPSILON}, system entropy for curvote")
    print(f"{'sampler':<20}{'seconds':>9}{'to curvote laplace':>20}")
    for name, value in seconds.items():
        print(f"{name:<20}{value:>9.3f}{value / own:>19.1f}x")
    ratio = seconds.get("opendp laplace", float("inf")) / own
    met = {
        f"at most {TARGET_SECONDS} s": own <= TARGET_SECONDS,
        f"at least {TARGET_RATIO} times": ratio >= TARGET_RATIO,
    }
    for target, reached in met.items():
        print(f"target: {target}: {reached}")
    return all(met.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--opendp-python", type=Path, default=ENVIRONMENT)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only-opendp", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only_opendp:
        print(json.dumps(time_opendp(given.repeats)))
        return 0
    seconds = time_curvote(given.repeats)
    if given.opendp_python.exists():
        seconds |= ask_opendp(given.opendp_python, given.repeats)
    else:
        print(
            f"No OpenDP: {given.opendp_python} is absent. `make bench` makes it, or:"
            f" python3 -m venv .venv-bench &&"
            f" .venv-bench/bin/pip install -r {REQUIREMENTS}",
            file=sys.stderr,
        )
    return 0 if print_table(seconds) else 1


if __name__ == "__main__":
    sys.exit(main())
