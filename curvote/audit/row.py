"""Subjects of the audit, its findings, and the row of verdicts on each subject."""

from __future__ import annotations

import decimal
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

MOST_DIGITS = 80
SHORT_DIGITS = 40
BROKEN = "broken."
GOOD = {"pass", "caught"}


@dataclass(frozen=True)
class Finding:
    """The result of one check of a subject; ``why`` is None for none wrong."""

    check: str
    why: str | None = None

    def __str__(self) -> str:
        return "ok" if self.why is None else f"violated: {self.why}"


@dataclass(frozen=True)
class Row:
    """The verdict on one subject at one budget.

    ``claimed``, ``exact`` and ``lower_bound`` are epsilons; ``exact`` is the loss of
    the declared law, ``lower_bound`` holds with probability ``confidence`` and comes
    from draws alone. ``verdict`` is pass or violated, of a broken one caught or missed.
    ``seed`` repeats the row.
    """

    mechanism: str
    params: Mapping[str, Any]
    claimed: float
    delta: float
    exact: float | None
    exact_ratio: str | None
    lower_bound: float | None
    confidence: float | None
    verdict: str
    checks: Mapping[str, str]
    caught_by: tuple[str, ...]
    seed: int

    @property
    def broken(self) -> bool:
        """Whether the subject is a broken twin, which must be caught."""
        return self.mechanism.startswith(BROKEN)

    @property
    def good(self) -> bool:
        """Whether the verdict is pass, or caught for a broken twin."""
        return self.verdict in GOOD

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain JSON values."""
        facts = asdict(self)
        params = {name: _to_plain(value) for name, value in self.params.items()}
        return facts | {"params": params, "caught_by": list(self.caught_by)}


def _to_plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def ratio_text(ratio: Fraction | None) -> str | None:
    """Return the fraction as text, beyond 80 digits its value in 40."""
    if ratio is None:
        return None
    parts = ratio.numerator, ratio.denominator
    # An integer of 80 digits has at most 266 bits; long ones are never written out.
    if max(part.bit_length() for part in parts) <= MOST_DIGITS * 3.32:
        return f"{parts[0]}/{parts[1]}"
    context = decimal.Context(prec=SHORT_DIGITS, Emax=decimal.MAX_EMAX)
    value = context.divide(Decimal(parts[0]), Decimal(parts[1]))
    return f"{value} ({SHORT_DIGITS} digits)"
