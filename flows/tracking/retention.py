"""Deleting what MLflow holds of runs whose records go: rows, files, unused models.

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


_MODEL = "model_uri"


@dataclass(frozen=True)
class Gone:
    """The parent runs that are gone, or would be, and the folders they leave."""

    runs: frozenset[str]
    files: tuple[Path, ...]


@dataclass(frozen=True)
class _Family:
    parent: Run
    children: list[Run]

    @property
    def ids(self) -> set[str]:
        return {run.info.run_id for run in (self.parent, *self.children)}

    @property
    def models(self) -> set[str]:
        tags = (child.data.tags for child in self.children)
        return {own[_MODEL] for own in tags if _MODEL in own}


def forget(project: Project, parents: Collection[str], *, dry_run: bool) -> Gone:
    """Delete parent runs with their children, and models that no other run has.

    A run whose figures another one shows stays, and so does a model of a registered
    version that has an alias. The folders that are returned are for the caller to
    delete. Raises whatever MLflow raises.
    """
    client = connect(project)
    found = {run: _family(client, run) for run in parents}
    missing = {run for run, family in found.items() if family is None}
    every = [family for family in found.values() if family]
    going = [one for one in every if not _is_shown(client, one.parent, parents)]
    ids = {run for one in going for run in one.ids}
    models = {
        m for one in going for m in one.models if not _is_used(client, m, one, ids)
    }
    places = [run.info.artifact_uri for f in going for run in (f.parent, *f.children)]
    places += [place for m in sorted(models) if (place := _place(client, m))]
    if not dry_run:
        for family in going:
            _delete_versions(client, family.parent, models)
        _delete(client, ids, models)
    gone = missing | {one.parent.info.run_id for one in going}
    return Gone(frozenset(gone), tuple(_folders(places, {*ids, *models})))


def _family(client: MlflowClient, run: str) -> _Family | None:
    from mlflow.exceptions import MlflowException

    try:
        parent = client.get_run(run)
    except MlflowException as error:
        if error.error_code == "RESOURCE_DOES_NOT_EXIST":
            return None
        raise
    wanted = f"tags.`mlflow.parentRunId` = '{run}'"
    return _Family(
        parent, list(client.search_runs([parent.info.experiment_id], wanted))
    )


def _is_shown(client: MlflowClient, run: Run, going: Collection[str]) -> bool:
    """Say whether a run that stays shows the report that this one holds."""
    wanted = f"tags.figures_run = '{run.info.run_id}'"
    found = client.search_runs([run.info.experiment_id], wanted)
    return any(other.info.run_id not in going for other in found)


def _is_used(client: MlflowClient, uri: str, family: _Family, going: set[str]) -> bool:
    """Say whether a run that stays, or a version with an alias, has a model."""
    wanted = f"tags.{_MODEL} = '{uri}'"
    runs = client.search_runs([family.parent.info.experiment_id], wanted)
    if any(run.info.run_id not in going for run in runs):
        return True
    name = family.parent.info.run_id
    versions = client.search_model_versions(f"run_id = '{name}'")
    return any(v.source == uri and v.aliases for v in versions)


def _place(client: MlflowClient, uri: str) -> str | None:
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


def _delete(client: MlflowClient, runs: set[str], models: set[str]) -> None:
    # Only the store itself deletes for good; a server keeps what it is told to delete.
    store = client._tracking_client.store  # noqa: SLF001
    for run in sorted(runs):
        client.delete_run(run)
        getattr(store, "_hard_delete_run", str)(run)
    for model in sorted(uri.removeprefix("models:/") for uri in models):
        client.delete_logged_model(model)
        getattr(store, "_hard_delete_logged_model", str)(model)


def _folders(places: list[str], owners: set[str]) -> Iterator[Path]:
    """Yield the folders on this machine that hold the files of a run or model alone."""
    names = {owner.removeprefix("models:/") for owner in owners}
    for place in places:
        parts = urlsplit(place)
        folder = Path(unquote(parts.path)).parent
        if parts.scheme in ("", "file") and folder.name in names:
            yield folder
