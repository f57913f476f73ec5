"""The values of a plan: cells, steps, and the releases of production."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from curvote.chain.axis import Cell
from curvote.chain.stage import Place, Stage
from curvote.run.config.source import Raw
from curvote.run.project import is_raw

# The form in which tables are stored: part of every key.
VERSION: Final = 4


@dataclass(frozen=True)
class Release:
    """The message that leaves clients in a step of production, and which time it is.

    ``base`` names (what is asked, cohort); ``number`` counts its releases from 1.
    """

    message: str
    base: str
    number: int
    by_envelope: bool

    @property
    def id(self) -> str:
        """The name of this one release."""
        return f"{self.base}-{self.number}"


@dataclass(frozen=True)
class Standing:
    """What production knows before a plan: the cohort, releases so far, envelopes.

    ``number`` is the release number of a base, ``accepted`` the digest of a round's
    accepted envelopes, None while it is not complete. ``witnesses`` are the paths of
    the files outside the project to which a release here is written.
    """

    cohort: str
    number: Callable[[str], int]
    accepted: Callable[[str], str | None]
    witnesses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Earlier:
    """An artifact of the same step, with another number of replicates: ``count``.

    The first ``kept`` of them are taken over, none of which is computed again.
    """

    key: str
    count: int
    kept: int


@dataclass(frozen=True)
class Step:
    """One artifact of a plan: what makes it, what names it, what will be done.

    Its tables repeat over ``index``, of these ``sizes``, at ``places``. ``private``
    says that its noise is nobody's to remove: real releases, not a study, whose noise
    comes from its seed. ``unpublished`` says that records stand behind it which nobody
    published. ``frozen`` means that it is made once, whatever code or libraries become,
    because a release was or will be made from it. ``also`` are more reasons to run it;
    what ``earlier`` names is taken over.
    """

    stage: Stage
    cell: Cell
    key: str
    components: dict[str, Any]
    inputs: dict[str, str]
    index: tuple[str, ...]
    sizes: Place
    places: tuple[Place, ...]
    raw: tuple[Raw, ...] = ()
    action: str = "run"
    reason: str = ""
    also: tuple[str, ...] = ()
    forced: bool = False
    release: Release | None = None
    frozen: bool = False
    private: bool = False
    unpublished: bool = False
    earlier: Earlier | None = None

    @property
    def id(self) -> tuple[str, str]:
        """The stage and the key: cells that are computed alike share it."""
        return self.stage.name, self.key

    @property
    def told(self) -> str:
        """The action as plans and records tell it: what computes nothing only copies.

        So it is where all replicates are taken over from a longer study.
        """
        whole = self.earlier is not None and self.earlier.kept == self.sizes[0]
        return "copy" if whole and self.action == "run" else self.action

    @property
    def mark(self) -> str:
        """What the tables hold: raw or noised numbers of clients, or public ones.

        All is public in a study of simulated people or of a published file.
        """
        if not self.unpublished:
            return "public"
        return "raw" if is_raw(self.stage.side) else "noised"

    @property
    def closed(self) -> bool:
        """Whether only the owner of the project may read the tables.

        So it is on the clients' side, and where a seed removes the noise of records
        that nobody published.
        """
        removable = self.unpublished and not self.private
        return removable or is_raw(self.stage.side)

    @property
    def sources(self) -> dict[str, tuple[str, str]]:
        """The (stage, key) of each input; "update@previous" is one of stage update."""
        return {
            name: (name.partition("@")[0], key) for name, key in self.inputs.items()
        }

    @property
    def name(self) -> str:
        """The stage, with its cell where it has one."""
        return f"{self.stage.name} {self.cell}".strip()

    @property
    def params(self) -> dict[str, Any]:
        """The resolved parameters that the stage's functions are given."""
        params: dict[str, Any] = self.components["params"]
        return params

    def row(self) -> dict[str, Any]:
        """Return the step as ``plan --json`` prints it: ``reasons`` are all of them.

        ``part`` tells apart what one stage computes in several ways.
        """
        return {
            "stage": self.stage.name,
            "part": ".".join(self.stage.module.split(".")[-2:]),
            "cell": str(self.cell),
            "key": self.key,
            "action": self.told,
            "reason": self.reason,
            "reasons": [self.reason, *self.also],
        }
