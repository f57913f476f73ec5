"""Settings of a quantification before collection."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from curvote.chain.settings import Epsilons, Strict, WholeNumber
from curvote.systems.common.settings import Clients

Share = Annotated[float, Field(gt=0, lt=1)]


class Record(Strict):
    """What the model reads of a record, and which of it is sensitive.

    All columns of the source are read where ``features`` names none. Public ``bounds``
    are those of the source where none are stated; ``group`` is a column by which
    everything is told once more, group by group.
    """

    features: list[str] = []
    sensitive: Annotated[list[str], Field(min_length=1)] | Literal["all"] = "all"
    bounds: dict[str, tuple[float, float]] = {}
    group: str | None = None


class Model(Strict):
    """A classifier of scikit-learn by its path; by itself no number is rescaled."""

    path: str
    label: str
    params: dict[str, Any] = {}
    scale: Literal["none", "standard"] = "none"

    @model_validator(mode="before")
    @classmethod
    def _add_label(cls, value: Any) -> Any:
        """Return the settings with a label, by default the class's name."""
        if isinstance(value, str):
            value = {"path": value}
        if isinstance(value, dict) and "path" in value and "label" not in value:
            value = value | {"label": str(value["path"]).rpartition(".")[2]}
        return value


class Deployments(Strict):
    """What may be sent, and how it may be read.

    ``params`` are the mechanisms' own, by mechanism. ``components`` are numbers of
    principal components of the public records, ``directions`` of those in which the
    model's answers change most on them; either is sent instead of the features.
    ``draws`` of each record stand behind what is known by drawing only. ``target`` is
    an agreement that is wanted; ``client_side`` says that clients can run the model.
    """

    mechanisms: Annotated[list[str], Field(min_length=1)] = ["pm_01", "joint_box"]
    params: dict[str, dict[str, Any]] = {}
    reads: list[Literal["raw", "decode", "retrain"]] = ["raw", "decode"]
    components: list[WholeNumber] = []
    directions: list[WholeNumber] = []
    draws: WholeNumber = 200
    target: Share | None = None
    client_side: bool = False
    clip: bool = True


class Settings(Strict):
    """What a quantification before collection reads.

    Clients who are ``public`` stand for a prior, ``train`` make the model, ``test`` are
    those whose answers are looked at.
    """

    clients: Clients
    epsilon: Epsilons
    record: Record = Record()
    models: list[Model] = []
    deployments: Deployments = Deployments()
