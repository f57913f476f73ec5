"""Data sets of a run as MLflow's entities: name, digest, source, schema.

Statistics of a data set, its profile, are told only where all the world has them: of
simulated data and of files that curvote's catalogue lists with this very digest. Of
anybody else's data MLflow gets the names of columns and a keyed digest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from curvote.data import raw_files
from curvote.pipeline.store.artifacts import Artifact

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput

_DIGEST_LENGTH = 36  # letters of a digest that MLflow takes
_PROFILE = ("rows", "counts", "missing", "duplicates", "bayes_error")


def dataset_inputs(stored: Iterable[Artifact]) -> list[DatasetInput]:
    """Return the data sets from which some artifacts were computed."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    tags = [InputTag("mlflow.data.context", "source")]
    inputs = []
    for ingested in (s for s in stored if not s.manifest["components"]["inputs"]):
        facts = ingested.metadata
        params = ingested.manifest["components"]["params"]
        name = params.get("source", {}).get("name", ingested.stage)
        files = facts.get("raw") or [{"name": name, "key": ingested.key}]
        urls = [_published_url(file) for file in files]
        public = bool(facts.get("simulated")) or all(urls)
        statistics = {key: facts[key] for key in _PROFILE if public and facts.get(key)}
        for file, url in zip(files, urls, strict=True):
            digest = file.get("sha256") or file.get("hmac_sha256") or ingested.key
            kind, source = ("http", {"url": url}) if url else ("curvote", file)
            data = Dataset(
                name,
                digest[:_DIGEST_LENGTH],
                kind,
                json.dumps(source),
                schema=_schema(facts) if facts else None,
                profile=json.dumps(statistics) if statistics else None,
            )
            inputs.append(DatasetInput(data, tags))
    return inputs


def _published_url(file: Mapping[str, str]) -> str | None:
    """Return the address of a file, if it is what the catalogue lists."""
    source = raw_files.catalogue().get(file["name"])
    return source.url if source and source.origin(file.get("sha256", "")) else None


def _schema(facts: Mapping[str, Any]) -> str:
    """Return the schema of records with their classes, as MLflow's pages read it."""
    from mlflow.data.schema import TensorDatasetSchema
    from mlflow.types import ColSpec, Schema, TensorSpec

    if features := facts.get("features"):
        columns = [ColSpec("double", feature["name"]) for feature in features]
        schema = Schema([*columns, ColSpec("string", "class")])
        return json.dumps({"mlflow_colspec": schema.to_dict()})
    shape = (-1, len(facts.get("grid") or ()) or -1)
    curves, classes = (np.dtype(np.float64), shape), (np.dtype(np.str_), (-1,))
    tensors = (Schema([TensorSpec(*spec)]) for spec in (curves, classes))
    return json.dumps(TensorDatasetSchema(*tensors).to_dict())
