"""Releases about tables: what one record moves, the exact delta, twins that are wrong.

That the audit catches each twin stands in `test_audit_gallery`.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from curvote.audit import choice, run
from curvote.audit.message_subject import message_subject_of
from curvote.base.entropy import SeededEntropy, SystemEntropy
from curvote.base.errors import UserError
from curvote.chain.axis import Cell
from curvote.mechanisms import gaussian
from curvote.mechanisms.gaussian import GaussianNoise
from curvote.messages.message import ClientData
from curvote.pipeline.plan import definitions
from curvote.pipeline.run import audit_tasks
from curvote.systems.transfer.audit import subject as leaving
from curvote.systems.transfer.audit import tables
from curvote.systems.transfer.audit.subject import TableSubject
from curvote.systems.transfer.messages import MESSAGES, ReleaseMessage
from curvote.systems.transfer.method import release
from curvote.systems.transfer.method.forms.kernel import Kernel
from curvote.systems.transfer.method.task import Level
from tests.audit.gallery import gallery
from tests.audit.server_twins import FormMessage
from tests.noise import SEED

SENT: Any = MESSAGES["release"]
FEW = 2000


@pytest.mark.parametrize(
    ("name", "epsilon", "delta"),
    [
        (name, tables.LEVELS[i % 3], tables.DELTAS[i % 2])
        for i, name in enumerate(tables.example_names())
    ],
)
def test_shipped_releases_pass(name: str, epsilon: float, delta: float | None) -> None:
    """Every form, and the draws prove no more than the law loses."""
    (row,) = run(choice.choice_table(name, epsilon, delta), samples=FEW)
    assert (row.mechanism, row.verdict) == (name, "pass"), row.checks
    assert row.delta == (delta or 1 / 16)
    assert row.exact is not None
    assert row.lower_bound is not None
    assert row.lower_bound <= row.exact <= epsilon
    assert {"sensitivity", "delta", "fields", "path", "streams", "queries"} < {
        *row.checks
    }


def test_an_honest_form_under_a_twin_s_roof_passes() -> None:
    """So what is caught is the fault, not how twins are made."""
    twin = gallery("broken.transfer_centring_unscaled")
    (row,) = run(replace(twin, message=FormMessage(Kernel())), samples=FEW)
    assert (row.verdict, row.caught_by) == ("missed", ())


def test_jobs_hold_each_release_at_all_levels() -> None:
    """At both deltas, and at one that is drawn; a star stands for all of them."""
    jobs = choice.audit_jobs(["transfer.*"], [], 1000, 5)
    claims = {(s.name, s.budget) for s, _ in jobs if isinstance(s, TableSubject)}
    assert len(claims) == len(jobs) == 7 * len(tables.example_names())
    assert choice.match_names(["broken.transfer_*"]) == [
        "broken.transfer_printed_noise"
    ]
    with pytest.raises(UserError, match="transfr"):
        choice.match_names(["transfr.*"])


# ------------------------------------------------------------------- twins are wrong
def twin_of(name: str) -> TableSubject:
    """Return a twin."""
    found = gallery(f"broken.transfer_{name}")
    assert isinstance(found, TableSubject)
    return found


def table(subject: TableSubject, *records: tuple[float, float, int]) -> ClientData:
    """Return a table of (a, b, class), features in [0, 1]."""
    rows = np.array(records, dtype=float)
    return tables.make_table(subject.task, rows[:, :2], rows[:, 2])


LOW, HIGH, ILL = (0.0, 0.0, 0), (1.0, 1.0, 0), (0.0, 0.0, 1)
MIDDLE = (0.4, 0.4, 1)


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("classes_without_sqrt2", [LOW], [ILL]),
        ("bandwidths_full_budget", [LOW], [ILL]),
        ("centring_unscaled", [ILL] + [LOW] * 99, [(1, 1, 1)] + [LOW] * 99),
        ("bounds_from_records", [LOW] + [MIDDLE] * 3, [HIGH] + [MIDDLE] * 3),
    ],
)
def test_two_neighbours_tell_more_than_the_twin_claims(name, one, other):
    """By the textbook formula, at the noise that is really added."""
    subject = twin_of(name)
    first, second = (table(subject, *rows) for rows in (one, other))
    sums = [subject.message.sums(subject.task, x) for x in (first, second)]
    apart = math.sqrt(((sums[0] - sums[1]) ** 2).sum())
    assert apart > 1.05 * subject.message.form(subject.task).sensitivity(subject.task)
    sigma = subject.message.noise(subject.task, len(one)).sigma
    assert tables.gaussian_delta(0.5, apart / sigma) > 1.2 * subject.budget.delta


@pytest.mark.parametrize("name", ["delta_ignored", "printed_noise"])
def test_the_noise_is_too_little_for_the_delta(name: str) -> None:
    """Though its sensitivity is right."""
    subject = twin_of(name)
    form = subject.message.form(subject.task)
    noise = subject.message.noise(subject.task, subject.records)
    deviation = form.sensitivity(subject.task) / noise.sigma
    claimed = subject.budget
    assert tables.gaussian_delta(claimed.epsilon, deviation) > 50 * claimed.delta


def test_the_mean_of_fresh_answers_is_the_truth_that_one_release_hides() -> None:
    """1,000 questions about one point: the honest error stays, the other goes."""
    twin, points = twin_of("fresh_noise"), np.full((1000, 2), 0.3)
    honest = choice.choice_table("transfer.moments", 0.5)
    x = honest.worst.first
    truth = honest.query_answers(honest.message.sums(honest.task, x)[None], points)[
        0, :2
    ]
    errors = []
    for subject in (honest, twin):
        told = subject.answers(x, points, 20, SeededEntropy(SEED))
        mean = told.reshape(20, 1000, -1).mean(axis=1)
        errors.append(np.sqrt(((mean - truth) ** 2).mean()))
    assert errors[1] < errors[0] / 20


def test_empty_cells_stand_as_zeros_in_the_twin_alone() -> None:
    """So they tell that nobody is there."""
    twin, honest = (
        twin_of("visited_cells_only"),
        choice.choice_table("transfer.cells", 0.5),
    )
    x = honest.worst.first
    empty = honest.message.sums(honest.task, x) == 0
    told, hidden = (
        s.message.draw(s.task, x, SeededEntropy(1))["values"][0] for s in (twin, honest)
    )
    assert (told[empty] == 0).all()
    assert (hidden[empty] == 0).mean() < 0.2


def test_the_rate_beside_is_exact() -> None:
    """To the last record."""
    subject = twin_of("rate_beside")
    known = table(subject, LOW, LOW, ILL)
    sent = subject.message.draw(subject.task, known, SystemEntropy())
    assert sent["rate"].tolist() == [pytest.approx(1 / 3)]


# --------------------------------------------------------------- what ships, if broken
def caught(monkeypatch: pytest.MonkeyPatch, place: Any, name: str, made: Any) -> set:
    """Return what sees it if one line of the product is another."""
    monkeypatch.setattr(place, name, made)
    (row,) = run(choice.choice_table("transfer.moments", 0.5), samples=FEW)
    assert row.verdict == "violated"
    return set(row.caught_by)


def test_noise_that_servers_share_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """One seed is one stream for all."""
    found = caught(
        monkeypatch, release, "server_stream", lambda entropy, asked: entropy
    )
    assert "streams" in found


def test_a_seed_that_depends_on_records_is_seen(monkeypatch):
    """Whoever knows the seed could tell records by the noise."""
    add = GaussianNoise.add

    def telling(self: GaussianNoise, steps: Any, entropy: Any) -> Any:
        return add(self, steps, SeededEntropy(abs(int(steps.ravel()[0]))))

    assert "streams" in caught(monkeypatch, GaussianNoise, "add", telling)


def test_half_the_noise_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever law is declared."""
    sample = gaussian.DiscreteGaussian.sample

    def halved(self: Any, n: int, entropy: Any) -> Any:
        return sample(self, n, entropy) // 2

    found = caught(monkeypatch, gaussian.DiscreteGaussian, "sample", halved)
    assert {"law", "interior"} <= found


def test_a_release_that_is_noised_in_another_way_than_declared_is_seen(monkeypatch):
    """A server's own call is held against the declared noise, word for word."""
    draw = ReleaseMessage.draw

    def shifted(self: Any, task: Any, known: Any, entropy: Any) -> Any:
        sent = draw(self, task, known, entropy)
        return sent | {"values": sent["values"] + 1}

    assert "path" in caught(monkeypatch, ReleaseMessage, "draw", shifted)


# ------------------------------------------------------------------- what a run audits
@pytest.mark.parametrize("label", [np.nan, -1, 0.5, 2, np.inf])
def test_a_label_that_is_none_is_refused(label: float) -> None:
    """Before it stands for another class."""
    task = tables.example_task("cells", Level(1.0))
    z = np.zeros((2, 2))
    with pytest.raises(UserError, match="label"):
        SENT.draw(task, ClientData(z, z, np.array([0, label])), SystemEntropy())


@pytest.mark.parametrize(
    ("form", "module"),
    [*((name, name) for name in ("cells", "moments", "kernel")), ("counts", "cells")],
)
def test_a_verdict_counts_for_the_code_of_the_form(form: str, module: str) -> None:
    """And of all that a release is made by."""
    task = tables.example_task(form, Level(1.0))
    package = "curvote.systems.transfer"
    code = definitions.of_code([f"{package}.messages", *SENT.code_modules(task)])
    needed = {f"forms.{module}", "release", "task"}
    assert {f"{package}.method.{name}" for name in needed} <= set(code)
    assert "curvote.mechanisms.gaussian" in code


def test_of_a_pipeline_each_server_s_release_is_a_subject() -> None:
    """About a hundred records, whatever its form; the printed one claims too much."""
    tasks = {
        name: tables.example_task(name, Level(8.0, 1e-3), **more)
        for name, more in (("moments", {}), ("printed", {"grids": 8, "cells": 128}))
    }
    rows = {
        name: run(message_subject_of(task), samples=0)[0]
        for name, task in tasks.items()
    }
    assert {row.mechanism for row in rows.values()} == {"transfer.release"}
    assert [row.verdict for row in rows.values()] == ["pass", "violated"]
    assert SENT.max_privacy_loss(tasks["moments"]) == pytest.approx(8.0)
    assert SENT.max_privacy_loss(tasks["printed"]) > 8.5


def test_a_pipeline_s_tasks_are_those_of_the_system(monkeypatch):
    """One for each server; the loss of the worst is what is shown for a level."""
    level = Level(2.0, 1e-3)
    tasks = [tables.example_task(name, level) for name in ("cells", "moments", "cells")]
    monkeypatch.setattr(
        audit_tasks, "run_tasks", lambda *_: audit_tasks._distinct_tasks(tasks)
    )
    project: Any = Cell()
    (loss,) = audit_tasks.exact_losses(project, project)
    assert (loss.message, loss.claimed, loss.is_within_claim) == ("release", 2.0, True)
    assert loss.exact == pytest.approx(2.0)


def test_neighbours_get_the_same_fields() -> None:
    """Only the values differ, and a stored release adds the task."""
    subject = choice.choice_table("transfer.kernel", 2.0)
    assert leaving.check_fields(subject) is None
    made = release.release(
        subject.task, "one", np.zeros((4, 2)), ["no"] * 4, SeededEntropy(1)
    )
    assert set(made.to_json()) == {"server", "n", "values", "task"}
