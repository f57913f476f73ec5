"""Tasks of a round as the configuration states them."""

from __future__ import annotations

from dataclasses import replace

from curvote.chain.stage import Inputs, Metadata, Params
from curvote.classes import Classes
from curvote.protocols.message import Message
from curvote.representation.encoding import Encoding
from curvote.task import Task


def configured_task(kind: Message, inputs: Inputs, params: Params) -> Task:
    """Return the task that the configuration states for one kind of message.

    Constants that volunteers decide are not in it. Nobody publishes that of a study:
    it has no protocol, and names the feature map only where a stage says that it
    matters.
    """
    public = inputs["project"].metadata
    encoding_from_project = Encoding.from_json(public["encoding"])
    feature_map = params.get("project.judge", encoding_from_project.feature_map)
    encoding = replace(encoding_from_project, feature_map=feature_map)
    return Task(
        encoding=encoding,
        classes=Classes(public["classes"]),
        epsilon=params["epsilon"],
        protocol=params.get("protocol", ""),
        asks=kind.name,
        number=params.get("number", 1),
        **kind.terms(params.__getitem__, encoding),
    )


def study_metadata(kind: Message, inputs: Inputs, params: Params) -> Metadata:
    """Return the metadata that later stages read of a study stage."""
    roughness = {"roughness": inputs["project"].metadata["roughness"]}
    return public_metadata(configured_task(kind, inputs, params)) | roughness


def public_metadata(task: Task) -> Metadata:
    """Return the metadata of a task that server-side stages read."""
    return {
        "d": task.encoding.d,
        "gram": task.encoding.projection.gram.tolist(),
        "epsilon": task.epsilon,
        "mechanism": task.mechanism,
        "params": dict(task.params),
        "n_classes": len(task.classes),
    }
