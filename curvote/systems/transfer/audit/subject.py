"""Subject and checks of a server's message about its whole table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from curvote.base.entropy import Entropy, SeededEntropy, SystemEntropy, Words
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.chain.stage import Columns
from curvote.checks import residuals
from curvote.checks.residuals import SAMPLE_NUMBERS, noise_uniforms
from curvote.checks.subject import Findings, Loss, OddInput, Rng, SentSubject
from curvote.mechanisms.gaussian import ROUNDING_VARIANCE, Steps
from curvote.messages.message import ClientData, payload_at
from curvote.systems.transfer.audit import tables
from curvote.systems.transfer.messages import MESSAGES, ReleaseMessage, ReleasePayload
from curvote.systems.transfer.method.release import check_release
from curvote.systems.transfer.method.task import Task
from curvote.wire.strict_json import canonical_json

SLACK = 1e-12
SEEDS = 8
# Of two servers' numbers chance makes a few alike: sigma is 16 steps at least.
EQUAL_SHARE = 0.5


class SeededSystemEntropy(SystemEntropy):
    """Seeded words in the operating system's place."""

    def __init__(self, seed: int) -> None:
        self._words = SeededEntropy(seed)

    def words(self, n: int) -> Words:
        """Return the next ``n`` words of the seed."""
        return self._words.words(n)


def check_sensitivity(subject: TableSubject) -> str | None:
    """Return a finding if one record moves the sums by more than declared."""
    declared = subject.message.form(subject.task).sensitivity(subject.task)
    for n in tables.table_sizes(subject.message, subject.task):
        square = tables.worst_neighbours(subject.message, subject.task, n).square
        if square > declared**2 * (1 + SLACK):
            moved = f"one record of {n} moves the sums by {math.sqrt(square):.6g}"
            return f"{moved} steps, not {declared:.6g}"
    return None


def check_delta(subject: TableSubject) -> str | None:
    """Return a finding if the exact delta exceeds the stated one."""
    epsilon, most = subject.budget.epsilon, subject.budget.delta
    noise = subject.message.noise(subject.task, subject.records)
    delta = tables.difference_delta(_sums_apart(subject), noise.sigma, epsilon)
    if delta <= most * (1 + 1e-9):
        return None
    return f"delta at epsilon {epsilon:g} is {delta:.3g}, not {most:.3g}"


def _sums_apart(subject: TableSubject) -> Steps:
    """Return how far the sums of the worst neighbours are apart."""
    first, second, _ = subject.worst.tables
    task, message = subject.task, subject.message
    return message.sums(task, first) - message.sums(task, second)


def check_fields(subject: TableSubject) -> str | None:
    """Return a finding if more than the declared fields leaves or differs."""
    visible = []
    for x in subject.worst.tables:
        message = payload_at(subject.message.draw(subject.task, x, SeededEntropy(1)), 0)
        undeclared = sorted(set(message) - set(ReleasePayload.model_fields))
        if undeclared:
            return f"{', '.join(undeclared)} leaves beside what is declared"
        why = _check_stored(subject, message)
        if why:
            return why
        visible.append(canonical_json(message | {"values": len(message["values"])}))
    return None if len(set(visible)) == 1 else "more than the values tells neighbours"


def _check_stored(subject: TableSubject, message: dict[str, Any]) -> str | None:
    """Return why a message is no release of this server, or None."""
    ReleasePayload.model_validate(message)
    try:
        release = check_release(subject.task, message["n"], message["values"])
    except UserError as error:
        return str(error)
    if release.to_json() != message | {"task": subject.task.digest()}:
        return "a stored release holds other things than what was sent"
    return None


def check_path(subject: TableSubject) -> str | None:
    """Return a finding if the message is not sums plus declared noise."""
    for seed, x in enumerate(subject.worst.tables):
        message = subject.message.draw(subject.task, x, SeededSystemEntropy(seed))
        sums = subject.message.sums(subject.task, x)
        noise = subject.message.noise(subject.task, len(x.z))
        noised = noise.add(sums, SeededEntropy(seed))
        if not np.array_equal(message["values"][0], noised):
            return "what leaves is not the sums with the declared noise"
    return None


def check_streams(subject: TableSubject) -> str | None:
    """Return a finding if noise depends on more than task, server and seed."""
    first_table, *other_tables = subject.worst.tables
    server_noise = _seeded_noise(subject, first_table)
    noises = (_seeded_noise(subject, x) for x in other_tables)
    if not all(np.array_equal(server_noise, noise) for noise in noises):
        return "with one seed the noise depends on the records"
    other_tasks = {
        "another server": replace(
            subject.task, servers={"another": subject.task.servers[subject.task.server]}
        ),
        "another time": replace(subject.task, number=subject.task.number + 1),
        "another grid": replace(subject.task, seed=subject.task.seed + 1),
    }
    for label, task in other_tasks.items():
        other_noise = _seeded_noise(replace(subject, task=task), first_table)
        if np.mean(np.abs(server_noise) == np.abs(other_noise)) > EQUAL_SHARE:
            return f"with one seed {label} gets the same noise"
    first, second = (
        subject.message.draw(subject.task, first_table, SystemEntropy())["values"]
        for _ in range(2)
    )
    if np.array_equal(first, second):
        return "the operating system gives the same noise twice"
    return None


def _seeded_noise(subject: TableSubject, x: ClientData) -> Any:
    """Return the noise of some seeded releases, (SEEDS, length)."""
    sums = subject.message.sums(subject.task, x)
    draws = (
        subject.message.draw(subject.task, x, SeededEntropy(seed))["values"][0]
        for seed in range(SEEDS)
    )
    return np.stack([values - sums for values in draws])


POINTS, TIMES = 250, 4
RELEASES = 200
# The covariance of answers is worked out at fewer points where there are many features.
WIDE, FEW = 1000, 40
# Standard deviations of an estimated separation.
MOST_ERRORS = 6.0


def check_queries(subject: TableSubject, seed: int = 1) -> str | None:
    """Return a finding if 1,000 answers tell neighbours apart more than allowed."""
    points = np.random.default_rng(seed).random((POINTS, subject.task.d))
    points = np.tile(points, (TIMES, 1))
    x, x2, _ = subject.worst.tables
    first_answers, second_answers = (
        subject.answers(table, points, RELEASES, SeededEntropy(seed + i))
        for i, table in enumerate((x, x2))
    )
    repeated = first_answers.reshape(RELEASES, TIMES, -1)
    size = max(float(np.abs(repeated).max()), 1.0)
    differs = np.ptp(repeated, axis=1).max() > 1e-9 * size
    why = "the same point asked twice gets two answers; " if differs else ""
    budget = subject.budget
    allowed_separation = tables.largest_deviation(budget.epsilon, budget.delta)
    separation = max(
        _separation(first_answers, second_answers, w)
        for w in _attack_weights(subject, points)
    )
    margin = MOST_ERRORS * math.sqrt((2 + separation * separation / 2) / RELEASES)
    if separation > allowed_separation + margin:
        why += f"{POINTS * TIMES} answers tell neighbours apart by {separation:.3g}"
        return f"{why} standard deviations, {allowed_separation:.3g} are allowed"
    return why or None


def _attack_weights(subject: TableSubject, points: FloatArray) -> list[FloatArray]:
    """Return the attacker's best weights of answers, for two kinds of noise.

    Noise drawn anew for each query: those of the answers' difference. Noise that all
    queries share: the same, with the shared part taken out by its covariance.
    """
    form, task = subject.message.form(subject.task), subject.task
    rows = form.weights(task, _sums_apart(subject).astype(np.float64))
    gap = form.product(task, points, rows)
    some = POINTS if rows.shape[1] <= WIDE else FEW
    features = form.product(task, points[:some], np.eye(rows.shape[1]))
    inverse = np.linalg.pinv(features @ features.T, rcond=1e-9, hermitian=True)
    shared = np.zeros_like(gap)
    shared[:some] = inverse @ gap[:some]
    return [gap.ravel(), shared.ravel()]


def _separation(
    first_answers: FloatArray, second_answers: FloatArray, weights: FloatArray
) -> float:
    """Return the separation of weighted answers in standard deviations."""
    first, second = first_answers @ weights, second_answers @ weights
    spread = math.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 2)
    return abs(float(first.mean() - second.mean())) / spread if spread else 0.0


Tables = list[ClientData]
# Sizes of tables of records from everywhere.
SIZES = (1, 2, 3, 17)
RECORDS = 100
# Numbers that are compared for the noise that they share.
PAIRED_NUMBERS = 2000
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
    most_numbers: ClassVar[int] = 150_000
    # Each table is a call of its own.
    crowd: ClassVar[tuple[int, int]] = (60, 60)
    batched: ClassVar[bool] = False

    @property
    def mechanism(self) -> None:
        """No one value: noise depends on the number of records."""

    @cached_property
    def worst(self) -> tables.WorstNeighbours:
        """Return the neighbours that are furthest apart."""
        return tables.worst_neighbours(self.message, self.task, self.records)

    def inputs(self, rng: Rng) -> list[ClientData]:
        """Return the two neighbours that are furthest apart."""
        del rng
        return [self.worst.first, self.worst.second]

    def draw(self, x: ClientData, n: int, entropy: Entropy) -> Columns:
        """Return the releases of ``n`` servers that all hold the table ``x``.

        The sums are made once and noised for all: `check_path` holds a single
        release against the same noise, word for word.
        """
        message = self.message.draw(self.task, x, entropy)
        sums = np.tile(self.message.sums(self.task, x), (n, 1))
        noise = self.message.noise(self.task, len(x.z))
        columns = {name: np.repeat(v, n, axis=0) for name, v in message.items()}
        return columns | {"values": noise.add(sums, entropy)}

    def send(self, many: Tables, entropy: Entropy) -> Columns:
        """Return the release of each of some tables."""
        messages = [self.message.draw(self.task, table, entropy) for table in many]
        columns: Columns = self.together(messages)
        return columns

    def many(self, n: int, rng: Rng) -> Tables:
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

    def _random_table(self, n: int, rng: Rng) -> ClientData:
        """Return a random table of ``n`` records."""
        cube = (residuals.test_values((n, self.task.d), rng) + 1) / 2
        codes = rng.integers(len(self.task.classes), size=n)
        return tables.make_table(self.task, cube, codes)

    def part(self, many: Tables, rows: slice) -> Tables:
        """Return some of the tables."""
        return many[rows]

    def places(self, many: Tables) -> FloatArray:
        """Return each table's first record in [-1, 1]^d, its class and its size."""
        first = [2 * self.task.cube(table.z)[0] - 1 for table in many]
        return np.column_stack(
            [first, [table.labels[0] for table in many], [len(k.z) for k in many]]
        )

    def residuals(self, many: Tables, outputs: Columns, rng: Rng) -> FloatArray:
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
        gap = residuals.uniformity_gap(uniforms, alpha)
        return gap or residuals.check_lags(uniforms[:PAIRED_NUMBERS, :-1])

    def input_row(self, x: ClientData) -> FloatArray | None:
        """Return the release without noise, None for another payload."""
        if self.message.payload is not ReleaseMessage.payload:
            return None
        return np.append(float(len(x.z)), self.message.sums(self.task, x))

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
        epsilon = tables.least_epsilon(deviation, self.budget.delta)
        # The product's own calculation is rounded towards privacy; this one is not.
        consistent = epsilon <= self.budget.epsilon * (1 + ROUNDING)
        return Loss(min(epsilon, self.budget.epsilon) if consistent else epsilon)

    def odd_inputs(self) -> list[OddInput]:
        """Return tables with no number, no label or no record, or out of bounds."""
        good = self._random_table(3, np.random.default_rng(0))
        good = replace(good, z=np.clip(good.z, *self._bounds()))
        odd = []
        for bad in (np.nan, -1.0, 0.5, float(len(self.task.classes)), np.inf):
            labels = np.append(bad, good.labels[1:])
            odd.append(OddInput(f"a label of {bad:g}", replace(good, labels=labels)))
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

    def own_checks(self) -> Findings:
        """Check sensitivity, the exact delta, the message, and queries."""
        return {name: check(self) for name, check in CHECKS.items()}

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
        by_point = answers.reshape(len(points), len(values), -1)
        return by_point.swapaxes(0, 1).reshape(len(values), -1)


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


# Checks of releases about tables alone, by their names.
CHECKS: Mapping[str, Callable[[TableSubject], str | None]] = {
    "sensitivity": check_sensitivity,
    "delta": check_delta,
    "fields": check_fields,
    "path": check_path,
    "streams": check_streams,
    "queries": check_queries,
}
