"""Noised codes of labels, one a client, with all that is public about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from numpy.typing import NDArray

from curvote.mechanisms import make
from curvote.mechanisms.base import LabelMechanism
from curvote.validate import FloatArray

# Numbers of a decoded block that are in memory at once.
_BLOCK = 1 << 22


@dataclass(frozen=True, eq=False)
class Codes:
    """The noised codes of n labels: all that left their owners, and what is public.

    ``values`` are a label mechanism's outputs, one row a client: (n,) int64, or packed
    bits (n, ceil(K/8)) uint8. ``classes`` (K,) are the labels that places stand for,
    ``encoder`` names the mechanism, ``params`` are its parameters. ``prior`` (n, K) is
    the public prior of each client, where the mechanism takes one.
    """

    values: NDArray[Any]
    classes: NDArray[Any]
    epsilon: float
    encoder: str
    params: Mapping[str, Any] = field(default_factory=dict)
    prior: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Codes:
        """Return the codes of some rows: a slice, a mask or an array of places."""
        prior = None if self.prior is None else self.prior[rows]
        return replace(self, values=self.values[rows], prior=prior)

    @property
    def n_classes(self) -> int:
        """K, the number of classes."""
        return len(self.classes)

    @property
    def nbytes(self) -> int:
        """How many bytes the codes take."""
        return self.values.nbytes

    @property
    def mechanism(self) -> LabelMechanism:
        """The mechanism that drew the codes."""
        given = {"n_classes": self.n_classes, **self.params}
        if self.prior is not None:
            given["prior"] = self.prior
        return cast("LabelMechanism", make(self.encoder, epsilon=self.epsilon, **given))

    def decode(self) -> FloatArray:
        """Return each client's estimate of its one-hot label, (n, K)."""
        return self.mechanism.decode(self.values)

    def likelihood(self) -> FloatArray:
        """Return P(code | class), (n, K), up to a factor that each row has of its own.

        The largest entry of a row is 1.
        """
        return self.mechanism.likelihood(self.values)

    def blocks(self) -> Iterator[tuple[slice, Codes]]:
        """Yield (rows, their codes), so few that decoded ones fit the memory."""
        step = max(1, _BLOCK // self.n_classes)
        for start in range(0, len(self), step):
            rows = slice(start, min(start + step, len(self)))
            yield rows, self[rows]
