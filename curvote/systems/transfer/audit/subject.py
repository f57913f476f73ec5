"""Checks of a server's message, and the broken twins that they must catch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from curvote.base.entropy import Entropy, SeededEntropy, SystemEntropy, Words
from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.base.validate import FloatArray
from curvote.chain.stage import Columns
from curvote.checks import residuals
from curvote.checks.residuals import SAMPLE_NUMBERS, noise_uniforms
from curvote.checks.subject import Finding, Loss, OddInput, SentSubject
from curvote.mechanisms.gaussian import ROUNDING_VARIANCE, GaussianNoise, Steps
from curvote.messages.message import ClientData, payload_at
from curvote.systems.transfer.audit import tables
from curvote.systems.transfer.messages import MESSAGES, ReleaseMessage, ReleasePayload
from curvote.systems.transfer.method.forms import cells, kernel, moments
from curvote.systems.transfer.method.release import check_release, server_stream
from curvote.systems.transfer.method.task import Form, Level, Task
from curvote.wire.strict_json import canonical_json

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
    x, x2, _ = subject.worst.tables
    apart = subject.message.sums(task, x) - subject.message.sums(task, x2)
    rows = form.weights(task, apart.astype(np.float64))
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
    def worst(self) -> tables.WorstNeighbours:
        """Return the neighbours that are furthest apart."""
        return tables.worst_neighbours(self.message, self.task, self.records)

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
        gap = residuals.uniformity_gap(uniforms, alpha)
        return gap or residuals.check_lags(uniforms[:PAIRED_NUMBERS, :-1]).why

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

    def own_checks(self) -> list[Finding]:
        """Check sensitivity, the exact delta, the message, and queries."""
        return [
            Finding("sensitivity", self._check_sensitivity()),
            Finding("delta", self._check_delta()),
            Finding("fields", check_fields(self)),
            Finding("path", check_path(self)),
            Finding("streams", check_streams(self)),
            Finding("queries", check_queries(self)),
        ]

    def _check_sensitivity(self) -> str | None:
        """Return a finding if one record moves the sums by more than declared."""
        declared = self.message.form(self.task).sensitivity(self.task)
        for n in tables.table_sizes(self.message, self.task):
            square = tables.worst_neighbours(self.message, self.task, n).square
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
        apart = self.message.sums(self.task, first)
        apart = apart - self.message.sums(self.task, second)
        noise = self.message.noise(self.task, self.records)
        delta = tables.difference_delta(apart, noise.sigma, epsilon)
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


DELTA = 1e-4


class FormMessage(ReleaseMessage):
    """Message of a form that is not in the registry."""

    def __init__(self, kind: Form) -> None:
        self.kind = kind

    def form(self, task: Any) -> Form:
        """Return the message's own form."""
        return self.kind

    def noise(self, task: Any, n: int) -> GaussianNoise:
        """Return the form's own noise."""
        return self.kind.noise(task, task.cost(n))

    def draw(self, task: Any, data: ClientData, entropy: Entropy) -> Columns:
        """Return a release like the shipped one, but for its numbers."""
        refusing = super().draw(task, data, SystemEntropy())
        noise, stream = self.noise(task, len(data.z)), server_stream(entropy, task)
        return refusing | {"values": noise.add(self.sums(task, data), stream)[None]}


@dataclass(frozen=True, eq=False)
class FreshNoise(TableSubject):
    """Keeps the sums, and noises them anew for each query."""

    def answers(
        self, x: ClientData, points: FloatArray, releases: int, entropy: Entropy
    ) -> FloatArray:
        """Return answers each of which has noise of its own."""
        releases_drawn = self.draw(x, releases * len(points), entropy)["values"]
        by_point = releases_drawn.astype(np.float64).reshape(len(points), releases, -1)
        pairs = zip(by_point, points[:, None], strict=True)
        return np.hstack([self.query_answers(values, point) for values, point in pairs])


class CentringUnscaled(kernel.Kernel):
    """Centres by the own rate, with the noise of a public centre (paper 002, (8))."""

    def sensitivity(self, task: Task) -> float:
        """Return the sensitivity of a centred sum with a fixed centre."""
        joint = math.sqrt(len(task.params["bandwidths"]))
        return self.unit(task) * joint + math.sqrt(self.length(task))


class ClassesWithoutSqrt2(cells.Cells):
    """Overlooks that a record that leaves one class arrives in another."""

    def sensitivity(self, task: Task) -> float:
        """Return the norm of one record, without the factor sqrt 2."""
        return self.unit(task)


class BoundsFromRecords(cells.Cells):
    """Takes each feature's bounds from the table."""

    def sums(self, task: Task, cube: FloatArray, codes: Steps) -> Steps:
        """Return the counts of records scaled by their own extremes."""
        least, most = cube.min(axis=0), cube.max(axis=0)
        scaled = (cube - least) / np.where(most > least, most - least, 1.0)
        return super().sums(task, scaled, codes)


class DeltaIgnored(moments.Moments):
    """Adds the noise of delta = n^-2 for every stated delta."""

    def noise(self, task: Task, budget: Budget) -> GaussianNoise:
        """Return the noise of another delta."""
        return super().noise(task, replace(budget, delta=tables.RECORDS**-2))


class VisitedNoise(GaussianNoise):
    """Noise on nonzero counts only."""

    def add(self, steps: Steps, entropy: Entropy) -> Steps:
        """Return the counts with noise, zeros unchanged."""
        return np.where(steps != 0, super().add(steps, entropy), 0)


class VisitedCellsOnly(cells.Cells):
    """Adds no noise to cells in which nobody is."""

    def noise(self, task: Task, budget: Budget) -> GaussianNoise:
        """Return noise for visited cells."""
        return VisitedNoise(self.sensitivity(task), budget.epsilon, budget.delta)


class RatePayload(ReleasePayload):
    """A release, and the share of the second class among the records."""

    rate: float


class RateBeside(ReleaseMessage):
    """Sends the exact own rate beside the centred sum, for whoever wants it back."""

    payload = RatePayload

    def draw(self, task: Any, data: ClientData, entropy: Entropy) -> Columns:
        """Return a release and the rate."""
        rate = np.array([np.mean(data.labels == 1)])
        return {"rate": rate, **super().draw(task, data, entropy)}


class BandwidthsFullBudget(kernel.Kernel):
    """Releases each of several bandwidths with the whole budget."""

    def sensitivity(self, task: Task) -> float:
        """Return the sensitivity at a single bandwidth."""
        return self.unit(task) + math.sqrt(self.length(task))


def release_twins() -> dict[str, Callable[[float], TableSubject]]:
    """Return the broken twins of releases by name."""
    forms: dict[str, tuple[type[Form], str]] = {
        "centring_unscaled": (CentringUnscaled, "kernel"),
        "classes_without_sqrt2": (ClassesWithoutSqrt2, "cells"),
        "bounds_from_records": (BoundsFromRecords, "cells"),
        "delta_ignored": (DeltaIgnored, "moments"),
        "visited_cells_only": (VisitedCellsOnly, "cells"),
        "bandwidths_full_budget": (BandwidthsFullBudget, "kernel_half"),
    }
    builders: dict[str, Callable[[float], TableSubject]] = {
        name: partial(_form_twin, name=example, message=FormMessage(kind()))
        for name, (kind, example) in forms.items()
    }
    builders["rate_beside"] = partial(_form_twin, name="kernel", message=RateBeside())
    builders["fresh_noise"] = _fresh_noise_twin
    builders["printed_noise"] = _printed_twin
    return {f"transfer_{name}": twin for name, twin in builders.items()}


def _form_twin(epsilon: float, *, name: str, message: ReleaseMessage) -> TableSubject:
    """Return the twin of one broken message."""
    subject = table_subject(
        tables.example_task(name, Level(epsilon, DELTA)), tables.RECORDS
    )
    return replace(subject, message=message)


def _fresh_noise_twin(epsilon: float) -> TableSubject:
    """Return the twin with fresh noise for each query."""
    subject = table_subject(
        tables.example_task("moments", Level(epsilon)), tables.RECORDS
    )
    return FreshNoise(**vars(subject))


def _printed_twin(epsilon: float) -> TableSubject:
    """Return the twin with the published noise, which is too little."""
    del epsilon
    task = tables.example_task("kernel_half", Level(20.0, DELTA), bandwidths=[1.0])
    return table_subject(replace(task, release="printed"), tables.RECORDS)
