"""What leaves a server: one message about all n records of its table."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from curvote.audit import interior, lags
from curvote.audit.row import Finding
from curvote.audit.sent_subject import SentSubject
from curvote.audit.servers import gaussian_law, leaving, neighbours, queries
from curvote.audit.subject import Loss, OddInput
from curvote.chain.stage import Columns
from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.mechanisms.gaussian_noise import ROUNDING_VARIANCE
from curvote.protocols.message import Known
from curvote.protocols.transfer.messages import MESSAGES, ReleaseMessage
from curvote.transfer.task import Task
from curvote.validate import FloatArray

Many = list[Known]
# Sizes of tables of records from everywhere.
SIZES = (1, 2, 3, 17)
RECORDS = 100
SOME = 12
# Numbers that are compared for the noise that they share.
SHARED = 2000
SLACK = 1e-12
# Roots are found to so much of themselves.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class TableSubject(SentSubject):
    """The release of a server about ``records`` records.

    An input is its table; ``inputs`` are neighbours whose sums are furthest apart.
    """

    task: Task
    message: ReleaseMessage
    records: int

    stands_for: ClassVar[str] = ""
    deciding: ClassVar[tuple[int, ...]] = ()
    rejects: ClassVar[bool] = False
    most_numbers: ClassVar[int] = 150_000
    # Each table is a call of its own.
    crowd: ClassVar[tuple[int, int]] = (60, 60)
    batched: ClassVar[bool] = False

    @cached_property
    def worst(self) -> neighbours.Worst:
        """Return the neighbours that are furthest apart."""
        return neighbours.worst(self.message, self.task, self.records)

    def inputs(self, rng: np.random.Generator) -> list[Known]:
        """Return the two neighbours that are furthest apart."""
        del rng
        return [self.worst.one, self.worst.other]

    def draw(self, x: Known, n: int, entropy: Entropy) -> Columns:
        """Return the releases of ``n`` servers that all hold the table ``x``.

        The sums are made once and noised for all: `leaving.path` holds a single
        release against the same noise, word for word.
        """
        one = self.message.draw(self.task, x, entropy)
        sums = np.tile(self.message.sums(self.task, x), (n, 1))
        noise = self.message.noise(self.task, len(x.z))
        others = {name: np.repeat(column, n, axis=0) for name, column in one.items()}
        return others | {"values": noise.add(sums, entropy)}

    def send(self, many: Many, entropy: Entropy) -> Columns:
        """Return the release of each of some tables."""
        drawn = [self.message.draw(self.task, table, entropy) for table in many]
        return self.together(drawn)

    def many(self, n: int, rng: np.random.Generator) -> Many:
        """Return tables of few records, from everywhere in the bounds and beyond."""
        sizes = [size for size in SIZES if self._legal(size)]
        return [self._table(int(size), rng) for size in rng.choice(sizes, n)]

    def _legal(self, n: int) -> bool:
        """Say whether delta is a promise to ``n`` records."""
        try:
            self.task.spends(n)
        except UserError:
            return False
        return True

    def _table(self, n: int, rng: np.random.Generator) -> Known:
        cube = (interior.values((n, self.task.d), rng) + 1) / 2
        codes = rng.integers(len(self.task.classes), size=n)
        return neighbours.known(self.task, cube, codes)

    def part(self, many: Many, rows: slice) -> Many:
        """Return some of the tables."""
        return many[rows]

    def places(self, many: Many) -> FloatArray:
        """Return each table's first record in [-1, 1]^d, its class and its size."""
        first = [2 * self.task.cube(known.z)[0] - 1 for known in many]
        return np.column_stack(
            [first, [known.labels[0] for known in many], [len(k.z) for k in many]]
        )

    def residuals(
        self, many: Many, outputs: Columns, rng: np.random.Generator
    ) -> FloatArray:
        """Return where some numbers, and the whole, lie in the declared noise's law."""
        sums = np.stack([self.message.sums(self.task, known) for known in many])
        sigma = [self.message.noise(self.task, len(k.z)).sigma for k in many]
        return of_noise(outputs["values"] - sums, np.array(sigma)[:, None], rng)

    def law_gap(self, x: Known, outputs: Columns, alpha: float) -> str | None:
        """Compare the noise with the declared law, and a release's numbers in pairs."""
        rng = np.random.default_rng(0)
        sigma = np.array([[self.message.noise(self.task, len(x.z)).sigma]])
        noise = outputs["values"] - self.message.sums(self.task, x)
        found = of_noise(noise, sigma, rng)
        gap = interior.excess(found, alpha)
        return gap or lags.check(found[:SHARED, :-1]).why

    def shown(self, x: Known) -> FloatArray | None:
        """Return the release without noise, where it has the declared form."""
        sums = self.message.sums(self.task, x)[None]
        if self.message.payload is not ReleaseMessage.payload:
            return None
        return np.append(float(len(x.z)), sums[0])

    def log_ratio(self, x: Known, x2: Known, outputs: Columns) -> FloatArray:
        """Return the declared loss of each release."""
        return self.message.log_ratio(self.task, x, x2, outputs)

    def possible(self, outputs: Columns) -> NDArray[np.bool_]:
        """Ask of the releases with the largest numbers; the bound is one for all."""
        sizes = np.abs(outputs["values"]).max(axis=1)
        found = np.ones(len(sizes), dtype=bool)
        some = np.argsort(sizes)[-SOME:]
        asked = {name: np.asarray(column)[some] for name, column in outputs.items()}
        found[some] = super().possible(asked)
        return found

    def loss(self) -> Loss:
        """Return the least epsilon at the stated delta, of the declared noise."""
        noise = self.message.noise(self.task, self.records)
        moved = self.message.form(self.task).sensitivity(self.task)
        deviation = moved / math.sqrt(noise.sigma**2 - ROUNDING_VARIANCE)
        found = gaussian_law.least_epsilon(deviation, self.budget.delta)
        # The product's own calculation is rounded towards privacy; this one is not.
        near = found <= self.budget.epsilon * (1 + ROUNDING)
        return Loss(min(found, self.budget.epsilon) if near else found)

    def odd_inputs(self) -> list[OddInput]:
        """Return tables with no number, no label or no record, or out of bounds."""
        good = self._table(3, np.random.default_rng(0))
        good = replace(good, z=np.clip(good.z, *self._bounds()))
        odd = [
            OddInput(f"a label of {bad:g}", replace(good, labels=_first(good, bad)))
            for bad in (np.nan, -1.0, 0.5, float(len(self.task.classes)), np.inf)
        ]
        for bad in (np.nan, np.inf, -np.inf):
            z = good.z.copy()
            z[0, 0] = bad
            odd.append(OddInput(f"a number of {bad:g}", replace(good, z=z)))
        odd.append(OddInput("a label too many", replace(good, labels=np.zeros(4))))
        odd.append(OddInput("a column too few", replace(good, z=good.z[:, 1:])))
        odd.append(OddInput("no record", good.of(slice(0))))
        _, upper = self._bounds()
        far, edge = (np.tile(row, (3, 1)) for row in (upper + 7, upper))
        odd.append(OddInput("7 above", replace(good, z=far), replace(good, z=edge)))
        return odd

    def _bounds(self) -> tuple[FloatArray, FloatArray]:
        lower, upper = np.array([each[1:] for each in self.task.features]).T
        return lower, upper

    def own_checks(self) -> list[Finding]:
        """Check what one record moves, the exact delta, what leaves, and queries."""
        checks = (leaving.fields, leaving.path, leaving.streams, queries.check)
        return [
            Finding("sensitivity", self._moved()),
            Finding("delta", self._delta()),
            *(Finding(_NAMES[check], check(self)) for check in checks),
        ]

    def _moved(self) -> str | None:
        """Compare all neighbours of small tables with the stated sensitivity."""
        stated = self.message.form(self.task).sensitivity(self.task)
        for n in neighbours.sizes(self.message, self.task):
            square = neighbours.worst(self.message, self.task, n).square
            if square > stated**2 * (1 + SLACK):
                return (
                    f"one record of {n} moves the sums by {math.sqrt(square):.6g}"
                    f" steps, not {stated:.6g}"
                )
        return None

    def _delta(self) -> str | None:
        """Compare the exact delta of the furthest neighbours with the stated one."""
        epsilon, most = self.budget.epsilon, self.budget.delta
        one, other, _ = self.worst.tables
        apart = self.message.sums(self.task, one) - self.message.sums(self.task, other)
        noise = self.message.noise(self.task, self.records)
        found = gaussian_law.of_difference(apart, noise.sigma, epsilon)
        if found <= most * (1 + 1e-9):
            return None
        return f"delta at epsilon {epsilon:g} is {found:.3g}, not {most:.3g}"

    def answers(
        self, x: Known, points: FloatArray, releases: int, entropy: Entropy
    ) -> FloatArray:
        """Return what queries at ``points`` (q, d) in [0, 1]^d are told, by release.

        (releases, q K): all classes' sums at a point, as they are released.
        """
        values = self.draw(x, releases, entropy)["values"].astype(np.float64)
        return self.told(values, points)

    def told(self, values: FloatArray, points: FloatArray) -> FloatArray:
        """Return the answers of some releases, (releases, q K)."""
        form = self.message.form(self.task)
        rows = np.concatenate([form.weights(self.task, one) for one in values])
        said = form.product(self.task, points, rows)
        return (
            said.reshape(len(points), len(values), -1)
            .swapaxes(0, 1)
            .reshape(len(values), -1)
        )


_NAMES = {
    leaving.fields: "fields",
    leaving.path: "path",
    leaving.streams: "streams",
    queries.check: "queries",
}


def _first(known: Known, label: float) -> FloatArray:
    return np.append(label, known.labels[1:])


def of_noise(
    noise: NDArray[np.int64], sigma: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Return the uniform place of some numbers' noise, and of its whole length."""
    spread = np.sqrt(sigma**2 + 1 / 12)
    z = (noise + rng.random(noise.shape) - 0.5) / spread
    some = rng.permutation(z.shape[1])[:SOME]
    length = special.gammainc(z.shape[1] / 2, (z**2).sum(axis=1) / 2)
    return np.column_stack([special.ndtr(z[:, some]), length])


def of_table(task: Task, records: int | None = None) -> TableSubject:
    """Return what one server is asked, about so many records, as a subject.

    100, or as many as the stated delta is a promise to.
    """
    if records is None:
        delta = task.servers[task.server].delta
        records = RECORDS if delta is None else min(RECORDS, math.floor(1 / delta))
    params = {"n": records, "d": task.d, "release": task.release, **task.params}
    named = f"{task.protocol}.{task.asks}", params, task.spends(records)
    return TableSubject(task, MESSAGES[task.asks], *named, records)
