"""Deletion of runs in MLflow: rows, files and unused models.

`mlflow gc` would also empty the bin of whoever shares the database.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from curvote.flows.tracking.store import connect
from curvote.run.project import Project

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run


_MODEL_TAG = "model_uri"


@dataclass(frozen=True)
class DeletedRuns:
    """The deleted parent runs, and the folders that they leave."""

    runs: frozenset[str]
    files: tuple[Path, ...]


@dataclass(frozen=True)
class _RunFamily:
    parent: Run
    children: list[Run]

    @property
    def run_ids(self) -> set[str]:
        return {run.info.run_id for run in (self.parent, *self.children)}

    @property
    def model_uris(self) -> set[str]:
        tags = (child.data.tags for child in self.children)
        return {
            tags_of_child[_MODEL_TAG]
            for tags_of_child in tags
            if _MODEL_TAG in tags_of_child
        }


def delete_runs(
    project: Project, parents: Collection[str], *, dry_run: bool
) -> DeletedRuns:
    """Delete parent runs with their children, and models of no other run.

    A run whose figures another one shows stays, and so does a model of a registered
    version that has an alias. The folders that are returned are for the caller to
    delete. Raises whatever MLflow raises.
    """
    client = connect(project)
    families = {run: _find_family(client, run) for run in parents}
    missing = {run for run, family in families.items() if family is None}
    existing = [family for family in families.values() if family]
    going = [
        family_going
        for family_going in existing
        if not _is_linked(client, family_going.parent, parents)
    ]
    ids = {run for family_going in going for run in family_going.run_ids}
    models = {
        m
        for family_going in going
        for m in family_going.model_uris
        if not _is_model_used(client, m, family_going, ids)
    }
    places = [run.info.artifact_uri for f in going for run in (f.parent, *f.children)]
    places += [place for m in sorted(models) if (place := _model_location(client, m))]
    if not dry_run:
        for family in going:
            _delete_versions(client, family.parent, models)
        _delete_for_good(client, ids, models)
    deleted = missing | {family_going.parent.info.run_id for family_going in going}
    return DeletedRuns(frozenset(deleted), tuple(_own_folders(places, {*ids, *models})))


def _find_family(client: MlflowClient, run: str) -> _RunFamily | None:
    from mlflow.exceptions import MlflowException

    try:
        parent = client.get_run(run)
    except MlflowException as error:
        if error.error_code == "RESOURCE_DOES_NOT_EXIST":
            return None
        raise
    wanted = f"tags.`mlflow.parentRunId` = '{run}'"
    return _RunFamily(
        parent, list(client.search_runs([parent.info.experiment_id], wanted))
    )


def _is_linked(client: MlflowClient, run: Run, going: Collection[str]) -> bool:
    """Return whether a remaining run shows this run's report."""
    wanted = f"tags.figures_run = '{run.info.run_id}'"
    linking = client.search_runs([run.info.experiment_id], wanted)
    return any(other.info.run_id not in going for other in linking)


def _is_model_used(
    client: MlflowClient, uri: str, family: _RunFamily, going: set[str]
) -> bool:
    """Return whether a remaining run or an aliased version uses a model."""
    wanted = f"tags.{_MODEL_TAG} = '{uri}'"
    runs = client.search_runs([family.parent.info.experiment_id], wanted)
    if any(run.info.run_id not in going for run in runs):
        return True
    name = family.parent.info.run_id
    versions = client.search_model_versions(f"run_id = '{name}'")
    return any(v.source == uri and v.aliases for v in versions)


def _model_location(client: MlflowClient, uri: str) -> str | None:
    from mlflow.exceptions import MlflowException

    try:
        return str(
            client.get_logged_model(uri.removeprefix("models:/")).artifact_location
        )
    except MlflowException:
        return None


def _delete_versions(client: MlflowClient, parent: Run, models: set[str]) -> None:
    for version in client.search_model_versions(f"run_id = '{parent.info.run_id}'"):
        if version.source in models or not version.aliases:
            client.delete_model_version(version.name, version.version)


def _delete_for_good(client: MlflowClient, runs: set[str], models: set[str]) -> None:
    # Only the store itself deletes for good; a server keeps what it is told to delete.
    store = client._tracking_client.store  # noqa: SLF001
    for run in sorted(runs):
        client.delete_run(run)
        getattr(store, "_hard_delete_run", str)(run)
    for model in sorted(uri.removeprefix("models:/") for uri in models):
        client.delete_logged_model(model)
        getattr(store, "_hard_delete_logged_model", str)(model)


def _own_folders(places: list[str], owners: set[str]) -> Iterator[Path]:
    """Yield the local folders that hold the files of one run or model only."""
    names = {owner.removeprefix("models:/") for owner in owners}
    for place in places:
        parts = urlsplit(place)
        folder = Path(unquote(parts.path)).parent
        if parts.scheme in ("", "file") and folder.name in names:
            yield folder
