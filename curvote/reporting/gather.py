"""From a run's artifacts to what its report shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from curvote.chain.stage import Columns
from curvote.datasets.lookup import module
from curvote.protocols.registry import PROTOCOLS
from curvote.protocols.roles import ROLES, split
from curvote.protocols.stage import Release
from curvote.reporting import card_figure, source_words
from curvote.reporting.card import card
from curvote.reporting.columns import columns
from curvote.reporting.data import SCORE_COLUMNS, CurveSample, DataCard, PageData
from curvote.reporting.outside import outside
from curvote.representation.basis import IDENTITY
from curvote.representation.rescale import RESCALES
from curvote.run import audited
from curvote.run.config.choosing import concrete, reasons
from curvote.run.config.settings import labels_of, of_config
from curvote.run.config.source import given
from curvote.run.dropped import dropped
from curvote.run.history import RunRecord
from curvote.run.project import Project
from curvote.run.release import production
from curvote.run.results import (
    cells,
    encoding_of,
    find,
    first_cell,
    outcomes,
    summary,
)
from curvote.run.store.artifacts import Artifact, sound

SHOWN = 60
DEGREES = {2: "linear", 3: "quadratic", 4: "cubic"}


def page_data(project: Project, record: RunRecord) -> PageData:
    """Collect everything a report shows from the tables of one run."""
    cell = first_cell(record)
    config = of_config(record.config, cell.setting)
    encoded = find(project, record, "project", cell)
    facts = encoded.facts
    private = config.get("mode") == "production"
    return PageData(
        pipeline=record.pipeline,
        title=facts["title"],
        replicates=config["replicates"],
        seed=config["seed"],
        protocol=", ".join(dict.fromkeys(p.called for p in concrete(record.config))),
        generated=record.started[:10],
        run_id=record.id,
        scores=pd.DataFrame(
            columns(summary(project, record)), columns=list(SCORE_COLUMNS)
        ),
        utilities=_utilities(project, record),
        cutoff=config["aggregate"]["cutoff"],
        curves=_curves(project, record, encoded),
        clients=_sizes(project, record, encoded),
        groups=config["source"].get("groups"),
        releases=_releases(record.config, facts["d"], private=private),
        public=_public(config, facts),
        volunteers=config["clients"]["public"],
        notes=[*source_words.notes(facts, config), *_notes(project, record)],
        bayes_error=facts.get("bayes_error"),
        private=private,
        overrides=record.overrides,
        card=None if private else _card(project, record, facts),
        clipped=None if private or given(config["source"]) else _clipped(encoded),
        losses=audited.exact_losses(project, record),
        audited=_audited(project, record),
        ledger=_ledger(project, record),
        outside=outside(project, record) if private else (),
        record="record" if facts.get("features") else "curve",
    )


def _notes(project: Project, record: RunRecord) -> list[str]:
    """Say what was varied, what the rule took, and what is missing."""
    varied = [*_settings(record), *reasons(record.config)]
    return [*varied, *_left_out(project, record), *dropped(project, record)]


def _settings(record: RunRecord) -> list[str]:
    """Say what else was varied; what stands below is that of the first setting."""
    names = [name for name in labels_of(record.config) if name]
    if not names:
        return []
    listed = "; ".join(names)
    return [f"{len(names)} settings: {listed}. Constants and data are of the first."]


def _left_out(project: Project, record: RunRecord) -> list[str]:
    """Say once why a method is missing."""
    found = [sound(project, "report", key).facts for _, key in record.keys("report")]
    reasons = dict.fromkeys(facts.get("histogram") for facts in found)
    return [f"histogram: {reason}" for reason in reasons if reason]


def _utilities(project: Project, record: RunRecord) -> pd.DataFrame:
    parts = [pd.DataFrame({"epsilon": [], "learner": [], "utility": []})]
    for cell in cells(record):
        made = find(project, record, "aggregate", cell)
        if not made.holds("ensemble"):
            continue
        utility = made.table("ensemble")["utility"].to_numpy()
        label = ", ".join(filter(None, [cell.learner, cell.setting]))
        parts.append(
            pd.DataFrame(
                {"epsilon": cell.epsilon, "learner": label, "utility": utility}
            )
        )
    return pd.concat(parts[1:] or parts, ignore_index=True)


def _card(
    project: Project, record: RunRecord, facts: dict[str, Any]
) -> DataCard | None:
    """Return the card of a published data set; nobody else's records are drawn."""
    source = record.config["source"]
    dataset = module(source["name"])
    parameters = dataset.Parameters.model_validate(source)
    if given(source) or not dataset.files(parameters):
        return None
    clients = find(project, record, "ingest", first_cell(record)).columns(
        "clients", (0,)
    )
    made = card(source["name"], parameters, facts, clients, root=project.root)
    return DataCard(made, card_figure.images(made, clients, ["svg"])["svg"])


def _clipped(encoded: Artifact) -> float:
    """Return the share of values outside their public bounds.

    It counts clients' values: neither a release nor a study on an own file tells it.
    """
    counts = [int(rows["clipped"].sum()) for rows in _first(encoded)]
    sizes = [rows["z"].size for rows in _first(encoded)]
    return sum(counts) / max(sum(sizes), 1)


def _first(encoded: Artifact) -> Iterator[Columns]:
    """Return the clients that all replicates share, or those of the first."""
    if -1 in encoded.replicates("encoded"):
        return encoded.pieces("encoded")
    return iter([encoded.columns("encoded", (0,))])


def _releases(config: Mapping[str, Any], d: int, *, private: bool) -> list[Release]:
    """Return what leaves clients, protocol after protocol where there are several."""
    every = concrete(config)
    several = len({pipeline.called for pipeline in every}) > 1
    found: dict[Release, None] = {}
    for pipeline in every:
        module = import_module(PROTOCOLS[pipeline.protocol])
        for release in module.releases(pipeline.model_dump(mode="json"), d):
            who = f"{pipeline.called}: {release.who}" if several else release.who
            found[replace(release, who=who)] = None
    if not private:
        return list(found)
    real = [release for release in found if not release.study_only]
    return [replace(release, epsilon=config["epsilon"][0]) for release in real]


def _audited(project: Project, record: RunRecord) -> str:
    """Say what the latest audit of what these clients send found, and when."""
    found = audited.saved(project, record)
    if found is None:
        return ""
    verdicts = [row["verdict"] for row in found["rows"]]
    passed = verdicts.count("pass")
    return f"{passed} of {len(verdicts)} messages passed on {found['audited'][:10]}"


def _ledger(project: Project, record: RunRecord) -> list[Any]:
    """Return the ledger's entries of this run's releases."""
    keys = {step["key"] for step in record.steps}
    return [entry for entry in production.entries(project) if entry.release in keys]


def _roles(
    encoded: Artifact, config: dict[str, Any], replicate: int
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    rows = encoded.columns("encoded", replicate)
    groups = rows["group"] if config["source"].get("groups") else None
    n = len(rows["label"])
    return rows, split(config["seed"], replicate, n, config["clients"], groups)


def _sizes(
    project: Project, record: RunRecord, encoded: Artifact
) -> dict[str, tuple[int, int, int]]:
    """Return (asked, least, most) of each role; sizes vary only where groups do."""
    config = of_config(record.config, first_cell(record).setting)
    if config.get("intake") is not None:  # nobody is here: their messages are counted
        (found,) = outcomes(project, record).values()
        reports, asked = int(found["reports"]), config["clients"]
        # Where nobody votes everybody reports, the training clients first.
        votes = int(found.get("votes", max(0, reports - asked["train"])))
        came = {"train": reports if "votes" in found else reports - votes}
        came["vote"] = votes
        return {role: (asked[role], n, n) for role, n in came.items()}
    several = range(config["replicates"]) if config["source"].get("groups") else (0,)
    roles = [_roles(encoded, config, replicate)[1] for replicate in several]
    return {
        role: (
            config["clients"][role],
            min(len(r[role]) for r in roles),
            max(len(r[role]) for r in roles),
        )
        for role in reversed(ROLES)
    }


def _curves(
    project: Project, record: RunRecord, encoded: Artifact
) -> CurveSample | None:
    """Return records that may be shown: volunteers', or simulated ones; else None."""
    cell, facts = first_cell(record), encoded.facts
    config = of_config(record.config, cell.setting)
    if config.get("intake") is not None or facts.get("features"):
        return None
    rows, roles = _roles(encoded, config, 0)
    if len(roles["public"]):
        who, shown = "volunteers", roles["public"][:SHOWN]
    elif facts["simulated"]:
        who, shown = "simulated", roles["train"][:SHOWN]
    else:
        return None
    clients = find(project, record, "ingest", cell).columns("clients", (0,))
    encoding = encoding_of(project, record, 0, cell)
    return CurveSample(
        grid=np.asarray(facts["grid"]),
        unit=facts["unit"],
        domain=tuple(facts["domain"]),
        curves=clients["curve"][shown],
        fitted=rows["coefficients"][shown]
        @ np.linalg.pinv(encoding.projection.matrix).T,
        z=rows["z"][shown],
        labels=rows["label"][shown],
        classes=tuple(facts["classes"]),
        basis=_basis(config["project"]),
        rescale=_rescale(config["project"]),
        who=who,
    )


def _basis(project: dict[str, Any]) -> str:
    size, order = project["size"], project["order"]
    if project["basis"] == IDENTITY:
        return "the features themselves"
    if project["basis"] == "fourier":
        return f"{size} Fourier functions"
    return f"{size} {DEGREES.get(order, f'order-{order}')} B-splines"


def _rescale(project: dict[str, Any]) -> str:
    given = RESCALES[project["rescale"]]
    if project["rescale"] == "min_max" and project.get("bounds", "stated") != "stated":
        return f"min_max (bounds: {project['bounds'].replace('_', ' ')})"
    constants = ", ".join(f"{name} {_stated(project[name])}" for name in given)
    return f"{project['rescale']} ({constants})" if constants else project["rescale"]


def _stated(value: Any) -> str:
    if isinstance(value, list):
        return "(" + ", ".join(f"{number:g}" for number in value) + ")"
    return f"of the {value}" if isinstance(value, str) else f"{value:g}"


def _public(config: dict[str, Any], facts: dict[str, Any]) -> list[str]:
    return [
        source_words.where(facts),
        f"the basis: {_basis(config['project'])}",
        f"the rescaling: {_rescale(config['project'])}",
        f"the classes: {facts['classes'][1]} (+1) against {facts['classes'][0]} (-1)",
    ]
