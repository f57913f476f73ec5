"""Protocol `direct` at a million clients with d = 8: ten classes beside two.

Drawing and reading ten classes, by the simplex code and by 1 of K, may take four times
as long as arm `joint` takes for two in the same run, in 2 GiB a stage.
"""

from __future__ import annotations

import sys

from benchmarks.bench_direct import MILLION, measured

MOST_TIMES, MOST_MIB = 4.0, 2048.0
# The epsilon at which each arm is asked for ten classes.
ARMS = {"mean": 1.0, "joint": 1.0, "two": 1.0, "one_of": 5.0}


def pipeline(arm: str, n_classes: int, epsilon: float) -> dict[str, object]:
    return {
        "protocol": "direct",
        "direct": {"arm": arm},
        "source": {"name": "simulated-classes", "d": 8, "n_classes": n_classes},
        "clients": {"train": MILLION, "test": 1000},
        "project": {"basis": "identity", "rescale": "standard", "scale": 1.8},
        "epsilon": [epsilon],
        "replicates": 1,
    }


def spent(arm: str, n_classes: int, epsilon: float) -> tuple[float, float]:
    """Return the seconds of all stages, and the largest peak in MiB."""
    print(f"{n_classes} classes at epsilon {epsilon:g}")
    rows = measured(pipeline(arm, n_classes, epsilon), MILLION, arm).values()
    return sum(row["seconds"] for row in rows), max(row["mib"] for row in rows)


def main() -> int:
    limit, peak = spent("joint", 2, 1.0)
    times, peaks = {}, [peak]
    for arm, epsilon in ARMS.items():
        seconds, mib = spent(arm, 10, epsilon)
        times[arm] = seconds / limit
        peaks.append(mib)
    print("times: " + ", ".join(f"{arm} {x:.1f}" for arm, x in times.items()))
    good = max(times.values()) <= MOST_TIMES and max(peaks) <= MOST_MIB
    print(f"target: at most {MOST_TIMES:g} times and {MOST_MIB:,.0f} MiB: {good}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
