"""Steps of a plan, their releases, and the state of releases that they depend on."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from curvote.chain.axis import Cell
from curvote.chain.stage import Place, Stage
from curvote.pipeline.config.project import is_client_side
from curvote.pipeline.config.source import RawInput

# The form in which tables are stored: part of every key.
VERSION: Final = 4


@dataclass(frozen=True)
class Release:
    """A message that leaves clients in a production step, and its number.

    ``base`` names (what is asked, cohort); ``number`` counts its releases from 1.
    """

    message: str
    base: str
    number: int
    by_envelope: bool

    @property
    def id(self) -> str:
        """The name of this release: its base and number."""
        return f"{self.base}-{self.number}"


@dataclass(frozen=True)
class ReleaseState:
    """The state of releases before a plan: cohort, release numbers, envelopes.

    ``number`` is the release number of a base, ``accepted`` the digest of a round's
    accepted envelopes, None while it is not complete. ``witnesses`` are the paths of
    the files outside the project to which a release here is written.
    """

    cohort: str
    number: Callable[[str], int]
    accepted: Callable[[str], str | None]
    witnesses: tuple[str, ...] = ()


@dataclass(frozen=True)
class EarlierArtifact:
    """An artifact of the same step with another number of replicates.

    The first ``reused_count`` of them are taken over, none of which is computed again.
    """

    key: str
    count: int
    reused_count: int


@dataclass(frozen=True)
class Step:
    """One artifact of a plan: its stage, key, inputs, action and reasons.

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
    raw: tuple[RawInput, ...] = ()
    action: str = "run"
    reason: str = ""
    also: tuple[str, ...] = ()
    forced: bool = False
    release: Release | None = None
    frozen: bool = False
    private: bool = False
    unpublished: bool = False
    earlier: EarlierArtifact | None = None

    @property
    def id(self) -> tuple[str, str]:
        """The stage and the key, shared by cells that are computed alike."""
        return self.stage.name, self.key

    @property
    def reported_action(self) -> str:
        """The action as plans and records report it; "copy" if nothing is computed.

        So it is where all replicates are taken over from a longer study.
        """
        all_reused = (
            self.earlier is not None and self.earlier.reused_count == self.sizes[0]
        )
        return "copy" if all_reused and self.action == "run" else self.action

    @property
    def sensitivity(self) -> str:
        """The content of the tables: "raw", "noised" or "public".

        All is public in a study of simulated people or of a published file.
        """
        if not self.unpublished:
            return "public"
        return "raw" if is_client_side(self.stage.side) else "noised"

    @property
    def owner_only(self) -> bool:
        """Whether only the project's owner may read the tables.

        So it is on the clients' side, and where a seed removes the noise of records
        that nobody published.
        """
        removable = self.unpublished and not self.private
        return removable or is_client_side(self.stage.side)

    @property
    def sources(self) -> dict[str, tuple[str, str]]:
        """The (stage, key) of each input, by the input's name."""
        return {
            name: (name.partition("@")[0], key) for name, key in self.inputs.items()
        }

    @property
    def name(self) -> str:
        """The stage, with its cell if it has one."""
        return f"{self.stage.name} {self.cell}".strip()

    @property
    def params(self) -> dict[str, Any]:
        """The resolved parameters of the stage's functions."""
        params: dict[str, Any] = self.components["params"]
        return params

    def row(self) -> dict[str, Any]:
        """Return the step as ``plan --json`` prints it, with all ``reasons``.

        ``part`` tells apart what one stage computes in several ways.
        """
        return {
            "stage": self.stage.name,
            "part": ".".join(re.split(r"[.:]", self.stage.module)[-2:]),
            "cell": str(self.cell),
            "key": self.key,
            "action": self.reported_action,
            "reason": self.reason,
            "reasons": [self.reason, *self.also],
        }
