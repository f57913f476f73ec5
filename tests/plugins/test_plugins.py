"""Mechanisms, learners and data sets of packages that are not curvote's."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from curvote.audit import check_dataset, check_learner, check_mechanism
from curvote.base import registry
from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.chain.lookup import read_task
from curvote.intake.box import Intake
from curvote.mechanisms import make
from curvote.mechanisms.registry import MECHANISMS
from curvote.messages.answer import describe_answer
from curvote.messages.message import client_data, message_of, parse_messages, payload_at
from curvote.pipeline.run import audit_tasks
from curvote.pipeline.store import records
from curvote.report.page import draw_report
from curvote.wire.envelope import issue_invitations, read_envelope, seal_message
from tests import plain, production
from tests.plugins.conftest import PACKAGE
from tests.rounds import REPORTS

FOREIGN = plain.FEW | {
    "source": {"name": "steps", "points": 20},
    "privatize": {"mechanism": "thirds"},
    "learners": ["median"],
}
PLACES = FOREIGN | {
    "source": {"name": "acme_noise:steps", "points": 20},
    "privatize": {"mechanism": "acme_noise.noise:Thirds"},
    "learners": ["acme_noise.learners:fit_median"],
}


@pytest.mark.usefixtures("acme")
def test_the_shared_checks_pass_what_is_sound() -> None:
    """An author calls one function for each kind of plug-in, by name or by place."""
    check_mechanism("thirds", samples=20_000)
    check_mechanism("acme_noise.noise:Thirds", epsilons=[1.0], samples=0)
    check_learner("median")
    check_learner("median", shift=0.5)
    check_dataset("steps", points=12)
    check_dataset("acme_noise:steps")


@pytest.mark.usefixtures("acme")
def test_the_shared_checks_catch_what_is_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A mechanism that tells what it hides, a learner of NaN, clients without label."""
    with pytest.raises(AssertionError, match=r"leaky_thirds:\n.*epsilon 1, "):
        check_mechanism("leaky_thirds", epsilons=[1.0], samples=20_000)
    from acme_noise import learners, steps

    monkeypatch.setattr(learners, "majority_label", lambda labels: labels[:, 0] / 0)
    with pytest.raises(AssertionError, match="one class: FloatingPointError"):
        check_learner("acme_noise.learners:fit_median")
    honest = steps.clients

    def unlabelled(*args: object) -> dict[str, object]:
        return {k: v for k, v in honest(*args).items() if k != "label"}

    monkeypatch.setattr(steps, "clients", unlabelled)
    with pytest.raises(AssertionError, match="clients lack label"):
        check_dataset("steps")


@pytest.mark.parametrize("given", [FOREIGN, PLACES], ids=["names", "places"])
def test_a_study_runs_on_plug_ins_and_counts_their_code(
    given: dict[str, object], acme: Path, tmp_path: Path
) -> None:
    """Any edit in the package reruns what reads it, and the reason names the file."""
    project = plain.write(tmp_path / "project", tiny=given)
    record = plain.run(project)
    assert records.completed_run(project, "tiny").id == record.id
    assert {step.action for step in plain.plan(project).steps} == {"reuse"}
    file = acme / "acme_noise" / "noise.py"
    file.write_text(file.read_text() + "\nMORE = 1\n")
    steps = {step.stage.name: step for step in plain.plan(project).steps}
    assert steps["privatize"].action == "run"
    assert "code acme_noise.noise changed" in steps["privatize"].reason
    assert steps["project"].action == "run"  # the data set is of the same package


@pytest.mark.usefixtures("acme", "blank_figures")
def test_the_page_says_that_no_audit_covers_a_plug_in(tmp_path: Path) -> None:
    """By the package's name and version, also after an audit of one's own."""
    project = plain.write(tmp_path / "project", tiny=FOREIGN)
    record = plain.run(project)
    (loss, _) = audit_tasks.exact_losses(project, record)
    assert (loss.plugin, loss.is_within_claim) == ("acme-noise 1.0", True)
    said = "noise of acme-noise 1.0 is a plug-in&#39;s: what curvote ships and audits"
    assert said in draw_report(project, record).read_text()
    every = audit_tasks.run_tasks(project, record)
    verdicts = [(task, {"verdict": "pass"}) for task in every]
    audit_tasks.save_verdicts(project, "tiny", verdicts)
    page = draw_report(project, record).read_text()
    assert said in page
    assert "2 of 2 messages passed" in page


@pytest.mark.usefixtures("acme")
def test_an_envelope_is_marked_and_the_mark_cannot_be_left_out(tmp_path: Path) -> None:
    """Of a plug-in's message as of curvote's own: another mark is refused."""
    foreign = replace(REPORTS, mechanism="thirds", params={})
    for task, mark, other in (
        (foreign, "acme-noise 1.0", ""),
        (REPORTS, "", "acme-noise 1.0"),
    ):
        assert MECHANISMS.origin(task.mechanism) == mark
        assert (mark in describe_answer(task, None)) is True
        invited = issue_invitations(task, 2)
        points = task.encoding.projection.matrix.shape[1]
        data = client_data(task, np.zeros((2, points)), np.ones(2))
        drawn = message_of(task).draw(task, data, SeededEntropy(1))
        good = seal_message(invited[0], payload_at(drawn, 0), unaudited=mark)
        forged = seal_message(invited[1], payload_at(drawn, 1), unaudited=other)
        assert read_envelope(good).unaudited == mark
        with Intake(tmp_path / f"{task.mechanism}.sqlite") as intake:
            intake.open_round(
                "one", task=task, pipeline="p", needed=1, invitations=invited
            )
            first, second = intake.take_batch([good, forged], parse_messages)
        assert not isinstance(first, UserError)
        assert isinstance(second, UserError)
        assert "is marked as" in str(second)


@pytest.mark.usefixtures("acme")
def test_a_task_cannot_name_code_for_its_clients_to_run() -> None:
    """A place in somebody's task is refused unread; so is one in a release."""
    document = replace(REPORTS, mechanism="acme_noise.noise:Thirds").to_json()
    sys.modules.pop("acme_noise.noise", None)
    with pytest.raises(UserError, match="names code to run"):
        read_task(document)
    assert "acme_noise.noise" not in sys.modules
    assert read_task(document | {"mechanism": "thirds"}).mechanism == "thirds"


@pytest.mark.usefixtures("acme")
def test_a_release_takes_a_plug_in_by_name_only(tmp_path: Path) -> None:
    """Its clients can install a package; they cannot be told to import a place."""
    named = {"privatize": {"mechanism": "thirds"}}
    made = production.plan(production.write(tmp_path / "a", **named))
    assert len(production.releases(made)) == 2
    placed = {"privatize": {"mechanism": "acme_noise.noise:Thirds"}}
    with pytest.raises(UserError, match="names code by its place"):
        production.plan(production.write(tmp_path / "b", **placed))


def test_no_plug_in_takes_a_name_of_ours(
    acme: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry point called laplace changes nothing, nor does `sampled` take one."""
    points = acme / "acme_noise-1.0.dist-info" / "entry_points.txt"
    points.write_text(points.read_text().replace("thirds =", "laplace =", 1))
    registry._plugins.cache_clear()
    assert MECHANISMS.origin("laplace") == ""
    assert MECHANISMS["laplace"] == "curvote.mechanisms.laplace:Laplace"
    with pytest.raises(UserError, match="takes no plug-in"):
        make("sampled", epsilon=1.0, d=3, mechanism="leaky_thirds")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("acme_noise.nowhere:Thirds", "No module named"),
        ("acme_noise.noise:Nothing", "has no attribute"),
        ("acme_noise.noise.Thirds", "mechanism is 'acme_noise.noise.Thirds'"),
    ],
)
@pytest.mark.usefixtures("acme")
def test_a_wrong_place_is_said(name: str, words: str) -> None:
    """A module that is not there, a class that it lacks, a point for the colon."""
    with pytest.raises(UserError, match=words):
        make(name, epsilon=1.0)


def test_a_package_installed_by_pip_is_found_by_the_command(tmp_path: Path) -> None:
    """Built and installed as anybody would; processes: pip, and the command itself."""
    site, project = tmp_path / "site", plain.write(tmp_path / "home", tiny=FOREIGN)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    pip += ["--no-build-isolation", "--target", str(site)]
    source = tmp_path / "package"
    subprocess.run(["cp", "-r", PACKAGE, source], check=True)
    subprocess.run([*pip, source], check=True, timeout=300)
    environment = os.environ | {"PYTHONPATH": str(site)}
    command = [sys.executable, "-m", "curvote.cli"]
    there = ["--project", str(project.root)]

    def curvote(*words: str) -> str:
        called = [*command, *words]
        done = subprocess.run(
            called,
            check=False,
            env=environment,
            text=True,
            capture_output=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    listed = json.loads(curvote("list", "--json", *there))
    assert "thirds" in listed["mechanisms"]
    assert "steps" in listed["sources"]
    assert "median" in listed["learners"]
    planned = json.loads(curvote("plan", "tiny", "--json", *there))
    assert {step["action"] for step in planned} == {"run"}
