"""The task of a round before any table of the server's counts: as it is configured."""

from __future__ import annotations

from dataclasses import replace

from curvote.chain.stage import Facts, Inputs, Params
from curvote.classes import Classes
from curvote.protocols.message import Message
from curvote.representation.encoding import Encoding
from curvote.task import Task


def stated(kind: Message, inputs: Inputs, params: Params) -> Task:
    """Return the task that the configuration states for one kind of message.

    Constants that volunteers decide are not in it. Nobody publishes that of a study:
    it has no protocol, and names the feature map only where a stage says that it
    matters.
    """
    public = inputs["project"].facts
    plain = Encoding.from_json(public["encoding"])
    chosen = params.get("project.judge", plain.feature_map)
    encoding = replace(plain, feature_map=chosen)
    return Task(
        encoding=encoding,
        classes=Classes(public["classes"]),
        epsilon=params["epsilon"],
        protocol=params.get("protocol", ""),
        asks=kind.name,
        number=params.get("number", 1),
        **kind.terms(params.__getitem__, encoding),
    )


def facts_of(kind: Message, inputs: Inputs, params: Params) -> Facts:
    """Return what a study's stage tells the later ones of the messages it draws."""
    rough = {"roughness": inputs["project"].facts["roughness"]}
    return public(stated(kind, inputs, params)) | rough


def public(task: Task) -> Facts:
    """Return what server-side stages read of a task, but for the basis's roughness."""
    return {
        "d": task.encoding.d,
        "gram": task.encoding.projection.gram.tolist(),
        "epsilon": task.epsilon,
        "mechanism": task.mechanism,
        "params": dict(task.params),
        "n_classes": len(task.classes),
    }
