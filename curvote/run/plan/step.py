"""The values of a plan: cells, steps, and the releases of production."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from curvote.protocols.stage import Stage
from curvote.run.project import is_raw

# In place of replicates: rows that all of them share.
SHARED: tuple[int, ...] = (-1,)


@dataclass(frozen=True)
class Raw:
    """A raw file that ingest reads; its digest counts, its path does not.

    ``told`` is all that may be told of ``sha256``: itself, or for a file that nobody
    published its keyed digest (`keyed.keyed`).
    """

    name: str
    sha256: str = field(repr=False)
    path: str
    origin: str
    told: str

    @property
    def counted(self) -> dict[str, str]:
        """What stands of the digest in keys and manifests, under its kind."""
        kind = "sha256" if self.told == self.sha256 else "hmac_sha256"
        return {kind: self.told}


@dataclass(frozen=True)
class Cell:
    """One (protocol, epsilon, learner) of a setting; None where a stage shares it.

    ``arrival`` counts the groups of evaluation clients that came one after the other.
    """

    protocol: str | None = None
    epsilon: float | None = None
    learner: str | None = None
    setting: str | None = None
    arrival: int | None = None

    def __str__(self) -> str:
        named = {"epsilon": self.epsilon, "learner": self.learner}
        named["arrival"] = self.arrival
        parts = (f"{k}={_short(v)}" for k, v in named.items() if v is not None)
        return " ".join((*filter(None, [self.setting]), *parts))

    def wider(self) -> tuple[Cell, ...]:
        """Return the cells whose artifacts may serve this one, the narrowest first."""
        shared = (
            self,
            replace(self, arrival=None),
            replace(self, arrival=None, learner=None),
        )
        return (*shared, Cell(setting=self.setting))


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


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
    accepted envelopes, None while it is not complete.
    """

    cohort: str
    number: Callable[[str], int]
    accepted: Callable[[str], str | None]


@dataclass(frozen=True)
class Step:
    """One artifact of a plan: what makes it, what names it, what will be done.

    ``private`` says that its noise is nobody's to remove: real releases, not a study,
    whose noise comes from its seed. ``unpublished`` says that records stand behind it
    which nobody published. ``frozen`` means that it is made once, whatever code or
    libraries become, because a release was or will be made from it.
    """

    stage: Stage
    cell: Cell
    key: str
    components: dict[str, Any]
    inputs: dict[str, str]
    replicates: tuple[int, ...]
    raw: tuple[Raw, ...] = ()
    action: str = "run"
    reason: str = ""
    forced: bool = False
    release: Release | None = None
    frozen: bool = False
    private: bool = False
    unpublished: bool = False

    @property
    def id(self) -> tuple[str, str]:
        """The stage and the key: cells that are computed alike share it."""
        return self.stage.name, self.key

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

    def row(self) -> dict[str, str]:
        """Return the step as ``plan --json`` prints it."""
        return {
            "stage": self.stage.name,
            "cell": str(self.cell),
            "key": self.key,
            "action": self.action,
            "reason": self.reason,
        }
