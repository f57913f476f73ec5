"""What commands say as JSON, or as text, and what options they have, stays as it is."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import skops.io
import typer
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from curvote.checks import examples
from curvote.cli import app
from curvote.data import raw_files
from curvote.wire.envelope import issue_record_invitations
from tests import (
    asked_utility,
    drawings,
    exchange,
    hospitals,
    invited,
    plain,
    rounds,
    town,
)
from tests.formats import make
from tests.house import ROOT
from tests.pins import pinned

KIND = "commands"
STUDY = plain.TINY | {
    "source": town.TABLE,
    "clients": {"train": 50, "vote": 60, "test": 30},
    "project": {"basis": "identity", "rescale": "min_max", "bounds": "public"},
    "epsilon": [8],
    "learners": ["centroid"],
    "replicates": 2,
    "schedule": {"cron": "0 6 * * 1"},
}
ASK = " ".join((*asked_utility.ASK, *asked_utility.QUICK))
ADVISE = "advise --clients 600 --features 3 --epsilon 2"
# What is typed in the project, in this order; --json is added where there is any.
TYPED = (
    *("plan tiny", "plan real", "plan far", "plan people --why"),
    *("list", "list --all", "check people", "explain privunit"),
    *(
        "scores tiny",
        "scores people",
        "scores real",
        "report tiny",
        "runs",
        "runs tiny",
    ),
    *("diff tiny~1 tiny", "show tiny", "show real", "show far"),
    *("status", "status --verify", "health", "serve --check"),
    *("audit laplace binary_rr --epsilon 1 --samples 1000 --seed 3 --workers 1",),
    *("predict people --table people.csv --out told.csv",),
    *(
        "reproduce table-1-dtk",
        "gc --dry-run",
        f"utility model.skops {ASK}".replace("people", "patients"),
    ),
    *(ADVISE, f"{ADVISE} --best 0.9", f"{ADVISE} --liars 0.05"),
    *("data list", "data fetch diabetes", "data verify", "data show diabetes"),
    *("ledger show", "ledger show --client 3 --population simulated", "ledger check"),
    *("ledger export", "ledger export --format json", "ledger backup copy.sqlite"),
    *("ledger restore copy.sqlite", "ledger raise-cap simulated --epsilon 8 --yes"),
    *("intake key", "intake show far", "intake take far", "intake show elsewhere"),
    *("intake close far", "doctor", "init new --table people.csv"),
)
HOME = "--task task.json --invitation invitation.json"
CURVE = f"{HOME} --curve curve.csv --label yes --yes"
BALLOT = CURVE.replace("task.json", "vote-task.json")
BALLOT = BALLOT.replace(" invitation.json", " vote-invitation.json")
# What is typed at a client's home.
AT_HOME = (
    *("client init --name me --cap 3", f"client report {CURVE}"),
    *(f"client answer {CURVE}", f"client vote {BALLOT}"),
    "client label --task labels.json --invitation record.json --label +1 --yes",
    *("client raise-cap --cap 4 --yes", "client show", "client page page.html"),
    *("client form --table patients.csv --out draft.yaml", "client form form.yaml"),
)
NOT_RUN = {
    "demo": "starts a server and runs the shipped pipeline",
    "run": "starts a server; what it does is what plans and studies here do",
    "ui": "serves until it is interrupted",
    "intake serve": "serves until it is interrupted",
    "deploy": "held by tests/flows/test_deploy.py",
    "rerun": "starts a server; held by tests/flows/test_rerun.py",
    "rehearse": "held by tests/flows/test_rehearsal.py",
    "certify": "held by tests/certificate",
    "intake merge": "held by tests/server/test_intake_production.py",
    "intake invitations": "held by tests/server/test_intake_production.py",
    "intake proofs": "held by tests/server/test_receipts.py",
    "client verify": "held by tests/client/test_sending.py",
    "monitor": "held by tests/monitor",
    "falsify": "held by tests/audit/test_falsify.py",
}
OF_FILES = {"data list", "data verify", "data fetch diabetes", "data show diabetes"}
# Values that no two runs share, by their key, and one that names a module.
VOLATILE = {"id", "key", "started", "finished", "sha256", "digest", "part"}
# Figures of these come from a fit that stops, or from votes: of 600 simulated clients
# one changes its mind with the last digit of a processor.
FITTED = ("advise", "utility")


# Options that are called by now as the same thing is elsewhere, by their former names,
# which are recorded; and commands whose arguments and options are others by intention:
# `answer` takes what its four aliases take, and the file of `page` is an option.
SPELLED = {
    "client release": {"--label": "--label-column", "--id": "--id-column"},
    "ledger raise-cap": {"--epsilon": "--cap", "--delta": "--cap-delta"},
}
CHANGED = {"client answer": {"--table", "--id-column"}, "client page": {"--out"}}


def commands() -> dict[str, Any]:
    """Return every command by the words that call it."""

    def below(one: Any, *words: str) -> Iterator[tuple[str, Any]]:
        for name, own in getattr(one, "commands", {}).items():
            yield from below(own, *words, name)
        if words and not hasattr(one, "commands"):
            yield " ".join(words), one

    return dict(below(typer.main.get_command(app.app)))


COMMANDS = commands()


def form(name: str) -> dict[str, Any]:
    """Return the arguments and options of a command, and a digest of its help."""
    done = CliRunner().invoke(
        app.app, [*name.split(), "--help"], env={"COLUMNS": "100"}
    )
    words = re.sub(r"[│╭╮╰╯─]", " ", done.stdout).split()
    former = {new: old for old, new in SPELLED.get(name, {}).items()}
    options = {"/".join(one.opts): _option(one) for one in COMMANDS[name].params}
    return {
        "options": {former.get(option, option): own for option, own in options.items()},
        "help": pinned.digest(" ".join(former.get(word, word) for word in words)),
        "exit": done.exit_code,
    }


def _option(one: Any) -> str:
    kind = "flag" if getattr(one, "is_flag", False) else "many" * one.multiple or "one"
    needed = "required" if one.required else f"default {one.default}"
    return f"{kind}; {needed}; {one.min} to {one.max}; {one.help}"


def write(root: Path) -> None:
    """Write a project with studies, a release, rounds of envelopes and a table."""
    make.make(root)
    every = {"tiny": make.TINY, "real": make.REAL}
    every |= {"far": exchange.FAR, "elsewhere": exchange.FAR}
    project = plain.write(root, **every, people=STUDY)
    shutil.copy(ROOT / "data" / "sources.toml", root / "data")
    town.export(root, str)
    plain.run(project, "people")
    plain.run(project, "tiny", "aggregate.cutoff=0.6")
    exchange.Server(project).run()
    people = asked_utility.people(400, 2)
    features = list(asked_utility.stroke_like(1).names)
    model = LogisticRegression(max_iter=5000).fit(people[features], people.stroke)
    skops.io.dump(model, root / "model.skops")
    people[:60].to_csv(root / "patients.csv", index=False)
    project.inbox("far").mkdir(parents=True)


def at_home(root: Path, patch: pytest.MonkeyPatch) -> None:
    """Write the folder of a client who is asked for a report, a vote and a label."""
    home = invited.Home(root, patch)
    home.invite(rounds.VOTES)
    for name in ("task", "invitation"):
        (root / f"{name}.json").rename(root / f"vote-{name}.json")
    asked = examples.example_task("labels", "code", 1.0)
    (record,) = issue_record_invitations(asked, ["a"], home.server.fingerprint)
    home.publish(asked.to_json())
    (root / "task.json").rename(root / "labels.json")
    (root / "record.json").write_text(json.dumps(record.to_json()))
    hospitals.table("va").to_csv(root / "patients.csv", index=False)
    (root / "form.yaml").write_text(hospitals.FORM)
    home.invite(rounds.REPORTS)


def said(words: str, *places: Path) -> dict[str, Any]:
    """Return how a command ends, and what it says without what no two runs share."""
    name = next(name for name in COMMANDS if f"{words} ".startswith(f"{name} "))
    known = {option for one in COMMANDS[name].params for option in one.opts}
    typed = [*words.split(), *["--json"] * ("--json" in known)]
    done = CliRunner().invoke(app.app, typed, env={"COLUMNS": "200"})
    outside = [
        str(place) for place in (*places, os.environ.get(raw_files.MIRROR)) if place
    ]
    error = "" if isinstance(done.exception, SystemExit) else str(done.exception or "")
    told: Any = pinned.masked(done.stdout, *outside).splitlines()
    if "--json" in known and done.stdout[:1] in {"{", "["}:
        told = of_json(json.loads(done.stdout), outside)
    error = pinned.masked(error, *outside)
    return {"exit": done.exit_code, "said": told} | ({"error": error} if error else {})


def of_json(value: Any, outside: list[str], key: str = "") -> Any:
    """Return a document in which what no two runs share is its type."""
    if isinstance(value, dict):
        return {k: of_json(own, outside, k) for k, own in value.items()}
    if isinstance(value, list):
        return [of_json(own, outside, key) for own in value]
    if key in VOLATILE and value is not None:
        return f"<{type(value).__name__}>"
    return (
        pinned.masked(value, *outside)
        if isinstance(value, str)
        else pinned.plain(value)
    )


def every(root: Path, patch: pytest.MonkeyPatch) -> Iterator[tuple[str, Any]]:
    """Yield what all commands have and say: in a project, at home, at a hospital."""
    for name in COMMANDS:
        yield f"{name} --help", form(name)
    patch.setenv("XDG_STATE_HOME", str(root / "state"))
    pinned.seeded(patch)
    write(root / "place")
    patch.chdir(root / "place")
    for words in TYPED:
        if words not in OF_FILES or os.environ.get(raw_files.MIRROR):
            yield words, said(words, root)
    at_home(root / "home", patch)
    for words in AT_HOME:
        yield words, said(words, root)
    server = hospitals.steward(root / "steward")
    server.run()
    va = hospitals.Hospital.at(root, "va")
    va.receive(server)
    va.init("--cap", "3", "--cap-delta", "1e-3")
    yield "client release", of_json(va.released(), [str(root)])


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Return all of it: commands act on what those before them left."""
    with pytest.MonkeyPatch.context() as patch, drawings.left_blank():
        yield dict(every(tmp_path_factory.mktemp("typed"), patch))


def test_every_command_is_typed() -> None:
    """Each with its options, and each that can be: with what it says."""
    typed = [f"{words} " for words in (*TYPED, *AT_HOME, "client release")]
    for name in COMMANDS:
        assert name in NOT_RUN or any(words.startswith(f"{name} ") for words in typed)
    forms = {f"{name} --help" for name in COMMANDS}
    assert set(pinned.items(KIND)) == forms | {words.strip() for words in typed}


@pytest.mark.parametrize("name", pinned.items(KIND))
def test_a_command_says_what_was_recorded(name: str, found: dict[str, Any]) -> None:
    """Exit code, keys, types, values; options with kinds, defaults and help."""
    if name in OF_FILES and not os.environ.get(raw_files.MIRROR):
        pytest.skip("needs the real file: CURVOTE_DATA_MIRROR unset")
    tolerance = 5e-2 if name.startswith(FITTED) else 1e-9
    said = pinned.as_json(found[name])
    if name.removesuffix(" --help") in CHANGED and name.endswith("--help"):
        assert said["options"].keys() >= CHANGED[name.removesuffix(" --help")]
        return
    assert not pinned.differences(said, pinned.recorded(KIND, name), tolerance)
