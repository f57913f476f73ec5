"""Every release of every system that has one keeps its name, its task and its draws.

A release under another name would be a second release of the same people. What the
operating system gives is replaced by seeded words, so that draws repeat.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from curvote.chain import lookup
from curvote.chain.lookup import all_systems
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.plan import step as identity
from curvote.pipeline.plan.step import Step
from curvote.pipeline.store.artifacts import artifact
from curvote.wire.signing import open_signed
from tests import exchange, hospitals, plain, production
from tests.pins import pinned

KIND = "releases"
STANDARD = {"basis": "bspline", "size": 4, "rescale": "standard", "scale": 0.5}
FOURIER = {
    "basis": "fourier",
    "size": 5,
    "coordinates": "orthonormal",
    "rescale": "min_max",
    "lower": -4,
    "upper": [4, 4, 4, 4, 5],
}
TEMPLATES = {
    "basis": "bspline",
    "size": 5,
    "order": 3,
    "centre": 0.25,
    "scale": [1, 2, 1, 2, 1],
    "judge": "inner_products",
}
SEED = {"seed": 11, "epsilon": 2}
CAP = {"ledger": {"per_client": {"epsilon": 6, "delta": 1e-4}, "population": "all"}}
VOTES = {"clients": {"train": 60, "vote": 90}}
VOLUNTEERS = {"clients": {"public": 30, "train": 60, "vote": 80}}
THREE = {
    "source": {"name": "circle", "n_classes": 3},
    "project": {"basis": "identity"},
    "clients": {"train": 200, "vote": 300},
}
FAR_THREE = {"source": {"name": "remote", "points": 20, "classes": ["a", "b", "c"]}}
# Of each system the changes of a small pipeline, by name.
BOTH: dict[str, dict[str, dict[str, Any]]] = {
    "mrma": {
        "usual": {},
        "duchi": {
            **SEED,
            "project": FOURIER,
            "privatize": {"mechanism": "duchi", "label_share": 0.3},
            "aggregate": {"cutoff": 0.6, "when_none_pass": "best"},
            "histogram": {"bins": 5},
        },
        "gaussian": {
            "project": TEMPLATES,
            **CAP,
            "privatize": {"mechanism": "gaussian", "params": {"delta": 1e-5}},
            "aggregate": {"weights": "distance"},
            "learners": [{"name": "lda", "label": "L"}],
            "online": {"error": 0.02},
        },
        "sampled": {
            "privatize": {"mechanism": "sampled", "params": {"k": 2}},
            "train": {"count": 3, "size": 15},
            "learners": ["logistic"],
        },
    },
    "direct": {
        "mean": {"project": STANDARD, "direct": {"arm": "mean"}},
        "joint": {"project": FOURIER, "direct": {"arm": "joint", "intercept": 0.5}},
        "other": {"project": STANDARD, "direct": {"arm": "joint"}, **SEED},
    },
    "direct_two": {
        "usual": {"project": STANDARD, "direct": {"arm": "two"}},
        "other": {"project": FOURIER, "direct": {"intercept": 0.5}, **SEED},
    },
    "direct_one_of": {
        "usual": {"project": STANDARD, "direct": {"arm": "one_of"}},
        "other": {"project": FOURIER, **SEED},
    },
    "votes": {
        "usual": {"project": STANDARD, "votes": {"directions": 7}},
        "other": {"project": FOURIER, "online": {"error": 0.1}, **SEED},
    },
    "majority": {"usual": {}, "other": SEED},
    "pilot": {
        "usual": {"project": STANDARD},
        "other": {"project": FOURIER, "counts": {"bins": 4}, **SEED},
    },
    "mrma_classes": {
        "usual": {"clients": {"train": 200, "vote": 300}},
        "other": {"privatize": {"mechanism": "piecewise"}, **SEED},
    },
    "counts": {
        "usual": {"project": STANDARD},
        "other": {"project": FOURIER, "counts": {"bins": 5}, **SEED},
    },
    "stump": {
        "usual": {"project": STANDARD},
        "other": {"project": FOURIER, "stump": {"thresholds": 3}, **SEED},
    },
    "tree": {
        "usual": {"project": STANDARD},
        "other": {"project": FOURIER, "tree": {"cells": 16}, **SEED},
    },
    "mrma_privunit": {
        "usual": {"project": STANDARD},
        "other": {
            "project": FOURIER,
            "direct": {"intercept": 0.5},
            "train": {"count": 3, "size": 15},
            "aggregate": {"cutoff": 0.6},
            **SEED,
        },
    },
}
HERE: dict[str, dict[str, Any]] = {
    "whitened": {
        "usual": {"project": STANDARD, **VOLUNTEERS},
        "other": {"project": FOURIER, **VOLUNTEERS, **SEED},
    },
    "joined": {
        "usual": {"project": STANDARD, "direct": {"arm": "joint"}, **VOLUNTEERS},
        "other": {
            "direct": {"arm": "mean"},
            "project": FOURIER | {"rescale": "standard", "scale": "volunteers"},
            "volunteers": {"labels": True},
            **VOLUNTEERS,
            **SEED,
        },
    },
    "labels": {
        "usual": {"source": {"name": "circle", "n_classes": 3}},
        "other": {
            "source": {"name": "circle", "n_classes": 4},
            "labels": {"encoder": "rr", "holdout": 0.3, "decide": "balanced"},
            "public": {"scale": "standard", "reduce": "pca", "size": 2},
            "learners": [{"name": "knn", "k": 5, "label": "knn-5"}],
            **SEED,
        },
        "vector": {
            "source": {"name": "circle", "n_classes": 3},
            "labels": {"encoder": "vector", "calibrate": False},
            "learners": ["ridge"],
        },
    },
}
CODES = {"name": "remote_labels", "path": "people.csv", "record": "person"}
CODES |= {"features": ["age", "town"], "classes": ["low", "mid", "high"]}
CODES |= {"categories": {"town": ["north", "south"]}}
FAR: dict[str, dict[str, Any]] = {
    "transfer": {
        "moments": {},
        "counts": {"transfer": {"target": "va", "release": "counts", "delta": 1e-6}},
        "cells": {
            "transfer": {
                "target": "va",
                "release": "cells",
                "params": {"order": 2},
                "epsilon": {"cleveland": 0.5},
            },
            "epsilon": 1,
        },
    },
    "labels": {
        "usual": {},
        "other": {"labels": {"encoder": "rr"}, "intake": {"min_codes": 2}, **SEED},
    },
    "monitor": {
        "usual": {},
        "class": {"monitor": {"question": "class", "classes": ["a", "b"]}, **SEED},
        "groups": {"monitor": {"group": {"private": ["young", "old"]}, "people": 9}},
    },
}


def pipelines() -> dict[str, dict[str, Any]]:
    """Return the pipeline of each release by system, place and settings."""
    found = {}
    for system, every in BOTH.items():
        several = system == "mrma_classes"
        context = production.REAL | (THREE if several else {})
        far = exchange.FAR | (FAR_THREE if several else {})
        for name, changes in every.items():
            given = {"protocol": system} | changes
            found[f"{system} here {name}"] = production.changed(context, **given)
            given.pop("ledger", None)  # who is elsewhere keeps one at home
            found[f"{system} far {name}"] = production.changed(far, **given)
    for system, every in HERE.items():
        for name, changes in every.items():
            own = {"protocol": system} | changes
            if system == "labels":
                own = {"learners": ["likelihood"], "clients": {"train": 60}} | own
            found[f"{system} here {name}"] = production.changed(production.REAL, **own)
    for name, changes in FAR["transfer"].items():
        found[f"transfer far {name}"] = hospitals.REMOTE | changes
    base = {"mode": "production", "protocol": "labels", "source": CODES}
    base |= {"learners": ["ridge"], "epsilon": 1, "intake": {}}
    for name, changes in FAR["labels"].items():
        found[f"labels far {name}"] = base | changes
    base |= {"protocol": "monitor"}
    base = {name: base[name] for name in ("mode", "protocol", "epsilon", "intake")}
    for name, changes in FAR["monitor"].items():
        found[f"monitor far {name}"] = base | changes
    found["mrma here capped"] = production.REAL | CAP
    waiting = {"min_reports": 30, "min_votes": 25, "sealed": True, "fold": 20}
    found["mrma far waiting"] = exchange.FAR | {"intake": waiting | {"online": True}}
    return found


PIPELINES = pipelines()


def facts(name: str, root: Path) -> Any:
    """Return what a pipeline releases: names, tasks, and what is drawn."""
    far = " far " in name
    given = PIPELINES[name]
    called = exchange.NAME if far else production.NAME
    project = plain.write(root, **{called: given})
    (root / "people.csv").write_text("person,age,town\na,30,north\nb,40,south\n")
    configured = PipelinesFile(project).configure_pipeline(called)
    asked = identity.stated_settings(configured.pipeline)
    if far:
        made, _ = exchange.Server(project).run()
        told: dict[str, Any] = {"published": _published(project, called)}
    else:
        made = production.run(project)
        told = {"drawn": [_drawn(project, step) for step in production.releases(made)]}
    names = [
        [step.stage.name, step.release.message, _cell(step), _name(step)]
        for step in made.steps
        if step.release
    ]
    return {"asked": pinned.plain(asked), "names": names, **told}


def _cell(step: Step) -> dict[str, Any]:
    return pinned.plain(step.cell.to_json())


def _name(step: Step) -> str:
    assert step.release
    return step.release.id if step.release.by_envelope else step.key


def _drawn(project: Project, step: Step) -> Any:
    there = artifact(project, step.stage.name, step.key)
    (table,) = there.manifest["tables"]
    columns = pinned.of_columns(there.columns(table, (0,)))
    return {"task": _task_digests(there.metadata["task"])[0], table: columns}


def _task_digests(document: Any) -> list[str]:
    """Return the digests of a task and of its parts by sender, whatever processor."""
    if "closes" in document:  # when its window ends
        document = document | {"closes": None}
    task: Any = lookup.read_task(pinned.portable(document))
    parts = [task.for_server(name) for name in getattr(task, "servers", ())]
    return [part.digest() for part in (task, *parts)]


def _published(project: Project, name: str) -> dict[str, list[str]]:
    """Return the digests of each published task, by its file's name."""
    return {
        path.name: sorted(
            _task_digests(open_signed(path.read_bytes()).document["task"])
        )
        for path in sorted(project.published(name).glob("*.task.json"))
    }


def every(root: Path, patch: pytest.MonkeyPatch) -> Iterator[tuple[str, Any]]:
    """Yield the facts of all pipelines."""
    for number, name in enumerate(PIPELINES):
        pinned.seeded(patch)
        yield name, facts(name, root / f"{number}")


def test_every_system_that_releases_is_pinned() -> None:
    """In-house and by envelope, but for what exists in one way only."""
    released = {one.name for one in all_systems() if one.production}
    ways = {tuple(name.split()[:2]) for name in PIPELINES}
    assert ways == {(n, w) for n in released for w in ("here", "far")} - {
        ("joined", "far"),
        ("whitened", "far"),
        ("transfer", "here"),
        ("monitor", "here"),
    }
    assert set(pinned.items(KIND)) == set(PIPELINES)


@pytest.mark.parametrize("name", PIPELINES)
def test_a_release_is_the_recorded_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the name is made of, the names, the tasks, and what leaves people."""
    pinned.seeded(monkeypatch)
    assert pinned.as_json(facts(name, tmp_path / "project")) == pinned.recorded(
        KIND, name
    )
