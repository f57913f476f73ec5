"""Table 1 and corollary 3.2: regime ends printed, corrected and by (4)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

_PAPER: Final = (0.25, 2)  # beta and d of its figure 1


class Setting(NamedTuple):
    """One target with n0 records and m equal sources with n each."""

    n0: int
    n: int
    m: int
    beta: float
    d: int
    gamma: float

    @property
    def columns(self) -> str:
        """The setting's columns of a row, without d."""
        parts = self._asdict()
        parts.pop("d")
        return " ".join(f"{name}={value:g}" for name, value in parts.items())

    @property
    def title(self) -> str:
        """The setting as the heading of a panel."""
        parts = (
            "" if (self.beta, self.d) == _PAPER else f", beta {self.beta:g}, d {self.d}"
        )
        sizes = f"n0 {self.n0:,}, n {self.n:,}, m {self.m}"
        return f"gamma {self.gamma:g}{parts}: {sizes}"

    @property
    def phase_arguments(self) -> dict[str, Any]:
        """The arguments of `curvote.transfer.phases`."""
        return self._asdict()


def _settings_for(n0: int, *gammas: float) -> tuple[Setting, ...]:
    return tuple(Setting(n0, 1000, 40, *_PAPER, gamma) for gamma in gammas)


# The target alone does better than the sources alone at the least epsilon where n0 is
# above sqrt(m) n = 6325, worse below; gamma(*) is near 2.
FIGURE: Final = (*_settings_for(7000, 0.8, 1.4), *_settings_for(6000, 1.4, 2.4))
# Every row of table 1, gamma = 1, large targets, and a setting in which the row
# gamma <= 1 of the printed table lacks a regime.
TABLE: Final = (
    *FIGURE,
    *_settings_for(2000, 1.0),
    *_settings_for(20_000, 0.8, 1.2),
    Setting(216_614, 74_409, 3, 0.97, 4, 0.85),
)
