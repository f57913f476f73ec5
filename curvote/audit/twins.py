"""Broken twins that `curvote audit` must catch, one for each kind of fault.

`tests/audit/gallery.py` has these and a hundred more, and `make test` catches all.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.audit.message_subject import message_subject_of
from curvote.audit.release import (
    Memo,
    People,
    Release,
    ReleaseOutcome,
    TableRelease,
    table_release,
)
from curvote.base.entropy import (
    Entropy,
    SeededEntropy,
    SystemEntropy,
    random_permutation,
)
from curvote.base.privacy import Budget
from curvote.base.validate import FloatArray
from curvote.chain.stage import Columns
from curvote.checks.examples import MORE, example_task
from curvote.checks.mechanism_subject import MechanismSubject, subject_of
from curvote.checks.subject import BROKEN, SentSubject
from curvote.checks.word_checks import Tape, play_tape
from curvote.mechanisms import exact
from curvote.mechanisms.base import Mechanism
from curvote.mechanisms.coordinates import PerCoordinate
from curvote.mechanisms.laplace import Laplace
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.messages.message import ClientData
from curvote.systems.cells import messages as cells
from curvote.systems.labels.messages import PRIOR, LikelyCodeMessage
from curvote.systems.transfer.audit import tables
from curvote.systems.transfer.audit.subject import table_subject
from curvote.systems.transfer.method.task import Level
from curvote.wire.task import Task


def on_grid(values: FloatArray) -> FloatArray:
    """Return values (n,) or (n, d) rounded to the grid of exact noise."""
    return np.asarray(np.rint(values / exact.GRID_STEP) * exact.GRID_STEP)


class OffByOneThreshold(BinaryRR):
    """Keeps the label for one word in 2^64 too many."""

    def __init__(self, *, epsilon: float) -> None:
        super().__init__(epsilon=epsilon)
        self.threshold += 1


class FloatLaplace(Laplace):
    """Adds floating-point noise: low bits tell where it was added (Mironov 2012)."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        rng = np.random.default_rng(int(entropy.words(1)[0]))
        return values + rng.laplace(scale=2 / self.epsilon, size=values.shape)


class NoNoise(Laplace):
    """Declares the Laplace law, and releases the value itself."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        del entropy
        return on_grid(values)


class SameSeed(Laplace):
    """Starts the same seeded stream at each call, whatever entropy it is given."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        del entropy
        return super()._draw(values, SeededEntropy(0))


class BudgetNotSplit(PerCoordinate):
    """Spends the whole epsilon on each coordinate."""

    def __init__(self, *, epsilon: float, d: int) -> None:
        super().__init__("laplace", d, epsilon=epsilon)
        self.scalar = Laplace(epsilon=epsilon)


class PassesNaN(Laplace):
    """Clips without looking: a missing value is released as missing."""

    def clip(self, values: ArrayLike) -> tuple[FloatArray, int]:
        """Return the clipped values; NaN stays NaN."""
        array: Any = np.asarray(values, dtype=np.float64)
        return np.clip(array, self.low, self.high), 0


class QuietBin(Laplace):
    """Adds no noise between .37 and .38."""

    def _quiet_mask(self, values: FloatArray) -> NDArray[np.bool_]:
        return np.asarray((values >= 0.37) & (values < 0.38))

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        noised = super()._draw(values, entropy)
        return np.where(self._quiet_mask(values), on_grid(values), noised)


LAG = 777


class LaggedNoise(Laplace):
    """Uses each noise again for the client 777 places on, with the other sign."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        noise = super()._draw(np.zeros(values.shape), entropy)
        block = np.arange(values.size) // LAG
        again = np.arange(values.size) - LAG * (block % 2)
        sign = np.where(block % 2, -1.0, 1.0)
        return np.asarray(on_grid(values) + sign * noise[again])


class BinsFromData(cells.Answer):
    """Puts the edges of bins at the clients' own quantiles, which nobody hid."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return answers about bins that the other clients' records moved."""
        thresholds = np.asarray(task.params["threshold"])
        shares = np.arange(1, thresholds.shape[1] + 1) / (thresholds.shape[1] + 1)
        edges = np.quantile(data.z, shares, axis=0).T
        params = {**task.params, "threshold": edges.tolist()}
        return super().draw(replace(task, params=params), data, entropy)


class NudgedPrior(LikelyCodeMessage):
    """Takes the label for likelier by 1e-9: seen where priors tie, and nowhere else."""

    def draw(self, task: Any, data: ClientData, entropy: Entropy) -> Columns:
        """Return codes drawn by priors that the labels have touched."""
        is_label = data.labels[:, None] == np.arange(len(task.classes))
        nudged = data.public[PRIOR] + 1e-9 * is_label
        return super().draw(task, replace(data, public={PRIOR: nudged}), entropy)


@dataclass(frozen=True, eq=False, kw_only=True)
class TableTwin(TableRelease):
    """A table with words from ``words``, and its order from ``arranged``."""

    words: Callable[[Release, People], Entropy] = lambda *_: SystemEntropy()
    arranged: Callable[[People], NDArray[np.int64]] = lambda people: random_permutation(
        len(people), SystemEntropy()
    )

    def leave(self, people: People, tape: Tape, *, world: int = 0) -> ReleaseOutcome:
        """Release with the twin's words and order."""
        with play_tape(tape, world=world):
            source, data = self.words(self, people), self.client_data(people)
            columns = self.message.draw(self.task, data, source)
            table, order = self.to_table(columns), self.arranged(people)
        rows = {name: values[order] for name, values in table.items()}
        return ReleaseOutcome(rows, {"form": sorted(rows)}, tape.answers)


Broken = MechanismSubject | SentSubject | Memo | Release
Make = Callable[[float], Broken]


def mechanism_twin(
    kind: Callable[..., Mechanism], extra: tuple[FloatArray, ...] = (), **params: Any
) -> Make:
    """Return the twin of a mechanism; ``extra`` inputs are tried first."""
    return lambda epsilon: subject_of(
        kind(epsilon=epsilon, **params), "", params, extra
    )


def message_twin(message: Any, protocol: str, *counts: int) -> Make:
    """Return the twin of a message about one record, of so many classes and words."""
    return lambda epsilon: replace(
        message_subject_of(example_task(protocol, message.name, epsilon, *counts)),
        message=message,
    )


def table_twin(kind: type[TableTwin] = TableTwin, **changes: Any) -> Make:
    """Return the twin of a cohort's stored table."""
    sizes = (1, 5, 17, 2000)

    def make(epsilon: float) -> Broken:
        honest = vars(table_release("table.mrma.report", epsilon))
        return kind(**honest | {"sizes": sizes, "params": {"rows": sizes}} | changes)

    return make


def _rerun_twin(epsilon: float) -> Memo:
    """Return a release without memory: each run noises the value anew."""
    truth, laplace = np.array([0.25]), Laplace(epsilon=epsilon)

    def release(seed: int) -> Callable[[], FloatArray]:
        return partial(laplace.randomize, truth, SeededEntropy(seed))

    return Memo("", {}, Budget(epsilon), truth, release)


def _printed_twin(epsilon: float) -> Broken:
    """Return a server's release with the published noise, which is too little."""
    del epsilon
    level = Level(20.0, tables.DELTAS[1])
    task = tables.example_task("kernel_half", level, bandwidths=[1.0])
    return table_subject(replace(task, release="printed"), tables.RECORDS)


def _clock_words(release: Release, people: People) -> Entropy:
    del release, people
    return SeededEntropy(int(time.time()))


def _label_order(people: People) -> NDArray[np.int64]:
    words = SystemEntropy().words(len(people))
    return np.lexsort((words, people.labels))


class Twin(NamedTuple):
    """A fault, and how many draws show it at most: none where its law does."""

    make: Make
    samples: int = 0


# A twin is caught by as many draws as its fault needs.
MOST_SAMPLES = 150_000
# Small, so that few draws prove a larger one.
EPSILON = 0.5
COUNTED: dict[str, Any] = {
    "what": cells.COUNTS_ANSWER.what,
    "nominal_partitions": cells.COUNTS_ANSWER.nominal_partitions,
}
TWINS: Mapping[str, Twin] = {
    "off_by_one_threshold": Twin(mechanism_twin(OffByOneThreshold)),
    "budget_not_split": Twin(mechanism_twin(BudgetNotSplit, d=3)),
    "passes_nan": Twin(mechanism_twin(PassesNaN)),
    "no_noise": Twin(mechanism_twin(NoNoise), MOST_SAMPLES),
    "float_laplace": Twin(mechanism_twin(FloatLaplace), MOST_SAMPLES),
    "quiet_bin": Twin(mechanism_twin(QuietBin), MOST_SAMPLES),
    "same_seed": Twin(mechanism_twin(SameSeed), MOST_SAMPLES),
    "lagged_noise": Twin(mechanism_twin(LaggedNoise), MOST_SAMPLES),
    "rerandomised_memo": Twin(_rerun_twin),
    "bins_from_data": Twin(message_twin(BinsFromData(**COUNTED), "counts")),
    "labels_nudged_prior": Twin(message_twin(NudgedPrior(), "labels_two", MORE)),
    "transfer_printed_noise": Twin(_printed_twin),
    "seeded_by_clock": Twin(table_twin(words=_clock_words)),
    "sorted_by_label": Twin(table_twin(arranged=_label_order), MOST_SAMPLES),
}


def gallery_names() -> list[str]:
    """Return ``broken.<name>`` of each twin."""
    return [BROKEN + name for name in TWINS]


def gallery(name: str, epsilon: float = EPSILON) -> Broken:
    """Return the broken twin ``name`` of ``gallery_names()``."""
    return replace(TWINS[name.removeprefix(BROKEN)].make(epsilon), name=name)
