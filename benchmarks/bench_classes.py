"""A million clients of ten classes, d = 8: `direct` drawn and read, beside two classes.

Reports are drawn as a study does (the law by its parts, from seeds) and as a release
does (the message itself: exact draws on words of the operating system, in random
order), and read to a classifier. Each way is a process of its own, so that a peak is
that of one alone. Fails where ten classes take more than 4 times the seconds of two
classes' `joint`, or any way more than 2 GiB.

Run with ``python -m benchmarks.bench_classes``, or with fewer clients as its argument.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from benchmarks.history import record
from curvote.base.classes import Classes
from curvote.chain.lookup import find_system
from curvote.chain.stage import (
    StageContext,
    make_rows,
    stack_rows,
    stage_functions,
)
from curvote.curves.basis import identity
from curvote.curves.encoding import Encoding
from curvote.messages.arms import decoding_metadata, protocol_of
from curvote.messages.message import messages_of
from curvote.messages.stages import task_metadata
from curvote.systems.common.models import predict_places
from curvote.systems.direct import stages
from curvote.wire.task import Task
from tests.memory import Memory, here

MILLION, D, SEED = 1_000_000, 8, 1
MOST_TIMES, MOST_GIB = 4.0, 2.0
WAYS = ("study", "release")
FEW = 20_000  # of the clients, told an error of
# By epsilon. The first is what the others are held against.
CASES = {
    1.0: (("joint", 2), ("mean", 10), ("joint", 10)),
    5.0: (("joint", 2), ("one_of", 10)),
}
ENCODING = Encoding(
    identity(D), "standard", {"centre": np.zeros(D), "scale": np.ones(D)}
)


@dataclass(frozen=True)
class Measured:
    """Seconds of drawing and reading, the peak of memory, and the error."""

    drawn: float
    read: float
    mib: float
    error: float

    @property
    def seconds(self) -> float:
        return self.drawn + self.read


def clients(n: int, n_classes: int) -> tuple[Any, Any]:
    """Return z (n, d), normal around centres of length 3, and labels (n,)."""
    rng = np.random.default_rng(SEED)
    centres = rng.normal(size=(n_classes, D))
    centres *= 3 / np.linalg.norm(centres, axis=1, keepdims=True)
    labels = rng.integers(n_classes, size=n)
    z = rng.normal(size=(n, D))
    z += centres[labels]
    return z, labels


def study(z: Any, labels: Any, params: dict[str, Any], n_classes: int) -> StageContext:
    """Return the stage of a study that draws, and what it reads."""
    protocol = protocol_of(params["direct.arm"])
    (stage,) = (s for s in find_system(protocol).stages if s.name == "privatize")
    facts = {"d": D, "encoding": ENCODING.to_json(), "roughness": []}
    facts |= {"classes": [*map(str, range(n_classes))]}
    encoded = {"z": z, "coefficients": z, "label": labels}
    return here(stage, {"project": Memory.of(facts, encoded=[encoded])}, params)


def release(
    z: Any, labels: Any, params: dict[str, Any], n_classes: int
) -> StageContext:
    """Return the stage of a release, and the task that its clients obey."""
    protocol, classes = params["protocol"], Classes(map(str, range(n_classes)))
    message = messages_of(protocol)["report"]
    stated = Task(ENCODING, classes, params["epsilon"], protocol, message.name)
    task = replace(stated, **message.terms(params.__getitem__, ENCODING))
    source = {"ingest": Memory.of({}, clients=[{"curve": z, "label": labels}])}
    return StageContext("privatize", (0,), (1,), source, params, task_metadata(task))


def measured(way: str, arm: str, n_classes: int, epsilon: float, n: int) -> Measured:
    """Draw and read in this process."""
    sizes = {"public": 0, "train": n, "vote": 0, "test": 0}
    params = {"seed": SEED, "clients": sizes, "source.groups": None, "replicates": 1}
    params |= {"epsilon": epsilon, "direct.arm": arm, "direct.intercept": "auto"}
    params |= {"protocol": protocol_of(arm), "message": "report"}
    z, labels = clients(n, n_classes)
    stage = (study if way == "study" else release)(z, labels, params, n_classes)
    member = find_system(params["protocol"])
    chain = member.stages if way == "study" else member.production
    (entry,) = (each for each in chain if each.name == "privatize")
    functions = stage_functions(entry.module)
    read = stages.decode_one_of if arm == "one_of" else stages.decode_reports
    times = [time.process_time()]  # one thread; others may be at work beside it
    (reports,) = stack_rows([*make_rows(functions, stage)]).values()
    times.append(time.process_time())
    made = read([reports], decoding_metadata(stage.metadata))
    times.append(time.process_time())
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    error = float(np.mean(predict_places(z[:FEW], made) != labels[:FEW]))
    return Measured(*np.diff(times).tolist(), kib / 1024, error)


def in_a_process(
    way: str, arm: str, n_classes: int, epsilon: float, n: int
) -> Measured:
    """Draw and read in a process of its own, and print what it took."""
    words = [way, arm, str(n_classes), str(epsilon)]
    command = [sys.executable, __file__, str(n), "--alone", *words]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found = Measured(**json.loads(done.stdout))
    print(
        f"  {way:8} K = {n_classes:2} {arm:7}{found.drawn:7.1f} s drawn"
        f"{found.read:6.1f} s read {found.mib:6.0f} MiB peak, error"
        f" {100 * found.error:.1f} %",
        flush=True,
    )
    return found


def compared(way: str, epsilon: float, n: int) -> tuple[float, float]:
    """Return the most times of two classes' seconds, and the most GiB."""
    cases = CASES[epsilon]
    first, *others = [in_a_process(way, *case, epsilon, n) for case in cases]
    times = max(other.seconds for other in others) / first.seconds
    print(f"  {way:8} at most {times:.2f} times K = {cases[0][1]} {cases[0][0]}")
    return times, max(one.mib for one in (first, *others)) / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clients", nargs="?", type=int, default=MILLION)
    parser.add_argument("--alone", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.alone:
        way, arm, n_classes, epsilon = given.alone
        found = measured(way, arm, int(n_classes), float(epsilon), given.clients)
        print(json.dumps(asdict(found)))
        return 0
    rows = []
    for epsilon in CASES:
        print(f"{given.clients:,} clients, d = {D}, epsilon {epsilon:g}")
        rows += [compared(way, epsilon, given.clients) for way in WAYS]
    worst = np.max(rows, axis=0)
    bounds = {"times two classes": MOST_TIMES, "GiB": MOST_GIB}
    ratios, sizes = {"times two classes": float(worst[0])}, {"GiB": float(worst[1])}
    return record("classes", ratios, sizes=sizes, bounds=bounds)


if __name__ == "__main__":
    sys.exit(main())
