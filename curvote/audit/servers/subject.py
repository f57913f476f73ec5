"""Audit subject of a release: one message about all n records of a server's table."""

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
from curvote.protocols.message import ClientData
from curvote.protocols.transfer.messages import MESSAGES, ReleaseMessage
from curvote.transfer.task import Task
from curvote.validate import FloatArray

Tables = list[ClientData]
# Sizes of tables of records from everywhere.
SIZES = (1, 2, 3, 17)
RECORDS = 100
SAMPLE_NUMBERS = 12
# Numbers that are compared for the noise that they share.
PAIRED_NUMBERS = 2000
SLACK = 1e-12
# Roots are found to so much of themselves.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class TableSubject(SentSubject):
    """Audit subject: the release of a server about ``records`` records.

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
    def worst(self) -> neighbours.WorstNeighbours:
        """Return the neighbours that are furthest apart."""
        return neighbours.worst_neighbours(self.message, self.task, self.records)

    def inputs(self, rng: np.random.Generator) -> list[ClientData]:
        """Return the two neighbours that are furthest apart."""
        del rng
        return [self.worst.first, self.worst.second]

    def draw(self, x: ClientData, n: int, entropy: Entropy) -> Columns:
        """Return the releases of ``n`` servers that all hold the table ``x``.

        The sums are made once and noised for all: `leaving.check_path` holds a single
        release against the same noise, word for word.
        """
        message = self.message.draw(self.task, x, entropy)
        sums = np.tile(self.message.sums(self.task, x), (n, 1))
        noise = self.message.noise(self.task, len(x.z))
        columns = {
            name: np.repeat(column, n, axis=0) for name, column in message.items()
        }
        return columns | {"values": noise.add(sums, entropy)}

    def send(self, many: Tables, entropy: Entropy) -> Columns:
        """Return the release of each of some tables."""
        messages = [self.message.draw(self.task, table, entropy) for table in many]
        return self.together(messages)

    def many(self, n: int, rng: np.random.Generator) -> Tables:
        """Return random small tables, within the bounds and beyond."""
        sizes = [size for size in SIZES if self._size_allowed(size)]
        return [self._random_table(int(size), rng) for size in rng.choice(sizes, n)]

    def _size_allowed(self, n: int) -> bool:
        """Return whether the stated delta allows ``n`` records."""
        try:
            self.task.cost(n)
        except UserError:
            return False
        return True

    def _random_table(self, n: int, rng: np.random.Generator) -> ClientData:
        """Return a random table of ``n`` records."""
        cube = (interior.test_values((n, self.task.d), rng) + 1) / 2
        codes = rng.integers(len(self.task.classes), size=n)
        return neighbours.make_table(self.task, cube, codes)

    def part(self, many: Tables, rows: slice) -> Tables:
        """Return some of the tables."""
        return many[rows]

    def places(self, many: Tables) -> FloatArray:
        """Return each table's first record in [-1, 1]^d, its class and its size."""
        first = [2 * self.task.cube(table.z)[0] - 1 for table in many]
        return np.column_stack(
            [first, [table.labels[0] for table in many], [len(k.z) for k in many]]
        )

    def residuals(
        self, many: Tables, outputs: Columns, rng: np.random.Generator
    ) -> FloatArray:
        """Return the uniform values of the noise under its declared law."""
        sums = np.stack([self.message.sums(self.task, table) for table in many])
        sigma = [self.message.noise(self.task, len(k.z)).sigma for k in many]
        return noise_uniforms(outputs["values"] - sums, np.array(sigma)[:, None], rng)

    def law_gap(self, x: ClientData, outputs: Columns, alpha: float) -> str | None:
        """Return a finding if the noise departs from its declared law."""
        rng = np.random.default_rng(0)
        sigma = np.array([[self.message.noise(self.task, len(x.z)).sigma]])
        noise = outputs["values"] - self.message.sums(self.task, x)
        uniforms = noise_uniforms(noise, sigma, rng)
        gap = interior.uniformity_gap(uniforms, alpha)
        return gap or lags.check_lags(uniforms[:PAIRED_NUMBERS, :-1]).why

    def shown(self, x: ClientData) -> FloatArray | None:
        """Return the release without noise, None for another payload."""
        sums = self.message.sums(self.task, x)[None]
        if self.message.payload is not ReleaseMessage.payload:
            return None
        return np.append(float(len(x.z)), sums[0])

    def log_ratio(self, x: ClientData, x2: ClientData, outputs: Columns) -> FloatArray:
        """Return the declared loss of each release."""
        return self.message.log_ratio(self.task, x, x2, outputs)

    def possible(self, outputs: Columns) -> NDArray[np.bool_]:
        """Return the mask of possible releases, tested at the largest."""
        sizes = np.abs(outputs["values"]).max(axis=1)
        mask = np.ones(len(sizes), dtype=bool)
        some = np.argsort(sizes)[-SAMPLE_NUMBERS:]
        selection = {name: np.asarray(column)[some] for name, column in outputs.items()}
        mask[some] = super().possible(selection)
        return mask

    def loss(self) -> Loss:
        """Return the least epsilon of the declared noise at the stated delta."""
        noise = self.message.noise(self.task, self.records)
        moved = self.message.form(self.task).sensitivity(self.task)
        deviation = moved / math.sqrt(noise.sigma**2 - ROUNDING_VARIANCE)
        epsilon = gaussian_law.least_epsilon(deviation, self.budget.delta)
        # The product's own calculation is rounded towards privacy; this one is not.
        consistent = epsilon <= self.budget.epsilon * (1 + ROUNDING)
        return Loss(min(epsilon, self.budget.epsilon) if consistent else epsilon)

    def odd_inputs(self) -> list[OddInput]:
        """Return tables with no number, no label or no record, or out of bounds."""
        good = self._random_table(3, np.random.default_rng(0))
        good = replace(good, z=np.clip(good.z, *self._bounds()))
        odd = [
            OddInput(
                f"a label of {bad:g}",
                replace(good, labels=_with_first_label(good, bad)),
            )
            for bad in (np.nan, -1.0, 0.5, float(len(self.task.classes)), np.inf)
        ]
        for bad in (np.nan, np.inf, -np.inf):
            z = good.z.copy()
            z[0, 0] = bad
            odd.append(OddInput(f"a number of {bad:g}", replace(good, z=z)))
        odd.append(OddInput("a label too many", replace(good, labels=np.zeros(4))))
        odd.append(OddInput("a column too few", replace(good, z=good.z[:, 1:])))
        odd.append(OddInput("no record", good.subset(slice(0))))
        _, upper = self._bounds()
        far, edge = (np.tile(row, (3, 1)) for row in (upper + 7, upper))
        odd.append(OddInput("7 above", replace(good, z=far), replace(good, z=edge)))
        return odd

    def _bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper bounds of the features."""
        lower, upper = np.array([feature[1:] for feature in self.task.features]).T
        return lower, upper

    def own_checks(self) -> list[Finding]:
        """Check sensitivity, the exact delta, the message, and queries."""
        checks = (
            leaving.check_fields,
            leaving.check_path,
            leaving.check_streams,
            queries.check_queries,
        )
        return [
            Finding("sensitivity", self._check_sensitivity()),
            Finding("delta", self._check_delta()),
            *(Finding(_FINDING_NAMES[check], check(self)) for check in checks),
        ]

    def _check_sensitivity(self) -> str | None:
        """Return a finding if one record moves the sums by more than declared."""
        declared = self.message.form(self.task).sensitivity(self.task)
        for n in neighbours.table_sizes(self.message, self.task):
            square = neighbours.worst_neighbours(self.message, self.task, n).square
            if square > declared**2 * (1 + SLACK):
                return (
                    f"one record of {n} moves the sums by {math.sqrt(square):.6g}"
                    f" steps, not {declared:.6g}"
                )
        return None

    def _check_delta(self) -> str | None:
        """Return a finding if the exact delta exceeds the stated one."""
        epsilon, most = self.budget.epsilon, self.budget.delta
        first, second, _ = self.worst.tables
        apart = self.message.sums(self.task, first) - self.message.sums(
            self.task, second
        )
        noise = self.message.noise(self.task, self.records)
        delta = gaussian_law.difference_delta(apart, noise.sigma, epsilon)
        if delta <= most * (1 + 1e-9):
            return None
        return f"delta at epsilon {epsilon:g} is {delta:.3g}, not {most:.3g}"

    def answers(
        self, x: ClientData, points: FloatArray, releases: int, entropy: Entropy
    ) -> FloatArray:
        """Return the answers of some releases at query ``points`` (q, d).

        (releases, q K): all classes' sums at a point, as they are released.
        """
        values = self.draw(x, releases, entropy)["values"].astype(np.float64)
        return self.query_answers(values, points)

    def query_answers(self, values: FloatArray, points: FloatArray) -> FloatArray:
        """Return the answers from released values, (releases, q K)."""
        form = self.message.form(self.task)
        rows = np.concatenate([form.weights(self.task, row) for row in values])
        answers = form.product(self.task, points, rows)
        return (
            answers.reshape(len(points), len(values), -1)
            .swapaxes(0, 1)
            .reshape(len(values), -1)
        )


_FINDING_NAMES = {
    leaving.check_fields: "fields",
    leaving.check_path: "path",
    leaving.check_streams: "streams",
    queries.check_queries: "queries",
}


def _with_first_label(table: ClientData, label: float) -> FloatArray:
    """Return the labels of a table with another first one."""
    return np.append(label, table.labels[1:])


def noise_uniforms(
    noise: NDArray[np.int64], sigma: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Return the uniform values of some noise numbers and of their length."""
    spread = np.sqrt(sigma**2 + 1 / 12)
    z = (noise + rng.random(noise.shape) - 0.5) / spread
    some = rng.permutation(z.shape[1])[:SAMPLE_NUMBERS]
    length = special.gammainc(z.shape[1] / 2, (z**2).sum(axis=1) / 2)
    return np.column_stack([special.ndtr(z[:, some]), length])


def table_subject(task: Task, records: int | None = None) -> TableSubject:
    """Return the audit subject of a task about so many records.

    100, or as many as the stated delta is a promise to.
    """
    if records is None:
        delta = task.servers[task.server].delta
        records = RECORDS if delta is None else min(RECORDS, math.floor(1 / delta))
    params = {"n": records, "d": task.d, "release": task.release, **task.params}
    named = f"{task.protocol}.{task.asks}", params, task.cost(records)
    return TableSubject(task, MESSAGES[task.asks], *named, records)
