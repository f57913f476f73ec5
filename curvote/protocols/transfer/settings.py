"""Settings of transfer between servers, and the tasks that follow from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from curvote.chain.settings import Count, Epsilon, Epsilons, Strict, Whole
from curvote.protocols.settings import Clients, Representation

Fault = Literal["flipped", "random"]
Delta = Annotated[float, Field(gt=0, lt=1)]


class Volunteers(Clients):
    """The volunteers, whose records are public; servers hold everybody else."""

    train: Count = 0


class Dealt(Strict):
    """Who learns from whom.

    ``target`` is the server that wants a classifier, the first by default; a study
    takes ``test`` of its records aside, a number or a share. A source that names no
    servers is dealt to ``servers`` of them, whole groups at a time.
    """

    target: str | None = None
    test: Count | Annotated[float, Field(gt=0, lt=1)] = 0
    servers: Whole | None = None


class Transfer(Dealt):
    """Who learns from whom (`Dealt`), in which form, and what each server spends.

    ``release`` is the form of a release with its own ``params``, or `auto`. ``epsilon``
    states a server's own instead of the axis: a number, ``public`` (nothing to protect)
    or, of the target, ``own`` (its records never leave). ``delta`` is everybody's, n^-2
    by default. ``weights`` are a rule or a number for each server; by default a study
    compares all rules, and ``aligned`` is kept. ``decide`` says whether classes count
    alike or as often as in the target. ``faults`` let servers of a study lie.
    ``matrix`` is the epsilon at which a study tries the release of each server alone on
    the records of all.
    """

    release: str = "auto"
    params: dict[str, Any] = {}
    epsilon: dict[str, Epsilon | Literal["public", "own"]] = {}
    delta: Delta | None = None
    weights: str | dict[str, Annotated[float, Field(ge=0)]] | None = None
    decide: Literal["balanced", "prior"] = "balanced"
    faults: dict[str, Fault] = {}
    matrix: Epsilon | None = None


DEFAULT_PROJECT = Representation(basis="identity", rescale="min_max", bounds="public")


class Settings(Strict):
    """What transfer between servers reads."""

    clients: Volunteers = Volunteers()
    project: Representation = DEFAULT_PROJECT
    epsilon: Epsilons
    transfer: Transfer = Transfer()
