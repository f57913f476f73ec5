"""Simulations of curves (MRMA section 6), with labels of a logistic law.

`CURVES` have a label of known Bayes error. `SERVER_CURVES` are those of many servers
(MRMA section 6.2): three groups, own slopes. `DRIFTING_CURVES` arrive in groups; they
are the same in every arrival, but the slope function of the logit turns at one of them.
It is what MRMA section 3.5, "Online data", has in mind: performance deteriorates on new
data.
"""

from __future__ import annotations

from copy import deepcopy
from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import Discriminator, Field, FiniteFloat, Tag, model_validator

from curvote.base import validate
from curvote.base.validate import FloatArray
from curvote.chain.settings import Count, Strict, WholeNumber
from curvote.data import columns
from curvote.data.columns import ClientColumns, Facts, Points

Slope = Literal["decaying"] | tuple[float, ...]

POINTS = 100
TITLE = "Simulated curves (MRMA section 6)"

_J = np.arange(1, 51)
_SIGN = (-1.0) ** (_J + 1)
_ZETA = _SIGN / _J  # standard deviations of a curve along phi_1, phi_2, ...
_EDGE = np.sqrt(3.0)  # xi is uniform on [-_EDGE, _EDGE]
_FAR = 30.0  # beyond a logit of this size the least error is below 1e-13

DECAY: FloatArray = _SIGN / _J**2.0
BETA: FloatArray = 4 * DECAY
INTERCEPT = 0.1

_Number = Annotated[FiniteFloat, Field(ge=-1e6, le=1e6)]
_Numbers = Annotated[tuple[_Number, ...], Field(max_length=len(_J))]


class CurvesParameters(Strict, title="Parameters"):
    """Settings of ``source:``: the grid points, and the label's law."""

    name: Literal["simulated"] = "simulated"
    points: Points = POINTS
    slope: Annotated[
        Annotated[Literal["decaying"], Tag("word")] | Annotated[_Numbers, Tag("list")],
        Discriminator(lambda value: "word" if isinstance(value, str) else "list"),
    ] = "decaying"
    intercept: FiniteFloat = INTERCEPT


class _CurveFamily(columns.Simulation):
    """Curves on [0, 1] with a label of two."""

    def facts(self, parameters: Any, _paths: Any = None) -> Facts:
        grid = np.linspace(0.0, 1.0, parameters.points).tolist()
        space = {"grid": grid, "domain": [0.0, 1.0], "unit": "time"}
        return {**space, "classes": ["-1", "+1"]} | super().facts(parameters)


class _Curves(_CurveFamily):
    Parameters = CurvesParameters

    def about(self, parameters: CurvesParameters) -> Facts:
        error = bayes_error(parameters.slope, parameters.intercept)
        notes = _law_notes(parameters)
        return {"title": TITLE, "notes": notes, "bayes_error": error}

    def clients(
        self, parameters: CurvesParameters, n: int, generator: Generator
    ) -> ClientColumns:
        """Return ``n`` new clients: client_id, label, group (n,) and curve (n, T)."""
        law = _custom_law(parameters)
        curves, labels = generate(generator, n, parameters.points, **law)
        return columns.client_columns(curves, labels)


def generate(
    generator: Generator,
    n: int,
    points: int = POINTS,
    beta: FloatArray = BETA,
    *,
    intercept: float = INTERCEPT,
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return ``n`` curves (n, points) on an equidistant grid of [0, 1], labels 0/1.

    ``beta`` (50,) holds the slope's coefficients on phi. The label's logit
    ``intercept`` + integral X beta is exact: phi is orthonormal, so the integral is the
    product of coefficients.
    """
    n = validate.at_least(1, n=n)
    points = validate.at_least(2, points=points)
    xi = generator.uniform(-_EDGE, _EDGE, size=(n, len(_J)))
    positive = _logistic(intercept + xi @ (_ZETA * beta))
    labels = (generator.random(n) < positive).astype(np.int64)
    t = np.linspace(0.0, 1.0, points)
    cosines: FloatArray = np.sqrt(2.0) * np.cos(np.pi * np.outer(_J - 1, t))
    cosines[0] = 1.0
    return (xi * _ZETA) @ cosines, labels


def coefficients(slope: Slope) -> FloatArray:
    """Return the basis coefficients (50,) of a ``slope`` setting."""
    if slope == "decaying":
        return BETA
    return np.concatenate([slope, np.zeros(len(_J) - len(slope))])


@lru_cache
def bayes_error(slope: Slope = "decaying", intercept: float = INTERCEPT) -> float:
    """Return E min(eta, 1 - eta), the least possible error, to better than 1e-4.

    The logit less its intercept is a sum of independent uniforms on [-s_j, s_j]; its
    density on [-L, L] is the Fourier series with coefficients prod_j sin(s_j t) /
    (s_j t).
    """
    reach = _EDGE * np.abs(_ZETA * coefficients(slope))
    end = 1.1 * reach.sum()
    if end < 1e-5:  # the error changes by less than a quarter of it
        return float(_logistic(-np.abs(np.float64(intercept))))
    t = np.pi * np.arange(1, 401) / end
    characteristic = np.sinc(np.outer(t, reach) / np.pi).prod(axis=1)
    near, far = np.clip([-intercept - _FAR, -intercept + _FAR], -end, end)
    s = np.linspace(near, far, 4001)
    density = (0.5 + characteristic @ np.cos(np.outer(t, s))) / end
    return float(np.trapezoid(density * _logistic(-np.abs(intercept + s)), s))


def _custom_law(parameters: CurvesParameters) -> dict[str, Any]:
    law = parameters.model_dump(include={"slope", "intercept"}, exclude_defaults=True)
    if "slope" in law:
        law["beta"] = coefficients(law.pop("slope"))
    return law


def _law_notes(parameters: CurvesParameters) -> list[str]:
    slope, intercept = parameters.slope, parameters.intercept
    if not _custom_law(parameters):
        return []
    numbers = slope if isinstance(slope, str) else ", ".join(f"{x:g}" for x in slope)
    return [f"The slope on phi_1, phi_2, ...: {numbers}; the intercept: {intercept:g}."]


def _logistic(logit: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):  # exp(710) is infinite, and 0 the right answer
        return np.asarray(1 / (1 + np.exp(-logit)))


_RATE = 15.0
_NOTES = (
    "Every server of every replicate has a slope of its own.",
    "Slopes of groups 1 and 3 point in opposite directions.",
    "Group 2 has Gaussian-process slopes, from which next to nothing can be learnt.",
)


class ServersParameters(Strict, title="Parameters"):
    """Settings of ``source:``: the grid points, and servers of each group."""

    name: Literal["simulated_servers"] = "simulated_servers"
    points: Points = POINTS
    servers: tuple[Count, Count, Count] = (10, 5, 10)

    @model_validator(mode="after")
    def _check_servers(self) -> ServersParameters:
        if not sum(self.servers):
            raise ValueError("there must be at least one server.")
        return self


class _ServerCurves(_CurveFamily):
    Parameters = ServersParameters

    def servers(self, parameters: ServersParameters) -> dict[str, None]:
        """Return the servers "0" to "K - 1"; a pipeline says each one's clients."""
        return dict.fromkeys(map(str, range(sum(parameters.servers))))

    def about(self, parameters: ServersParameters) -> Facts:
        every = self.servers(parameters)
        return {
            "title": "Simulated curves of many servers (MRMA section 6.2)",
            "bayes_error": None,  # it depends on the slope that was drawn
            "servers": every,
            "groups": [group_of(parameters, int(k)) for k in every],
            "notes": [*_NOTES],
        }

    def clients(
        self, parameters: ServersParameters, n: int, generator: Generator, server: int
    ) -> ClientColumns:
        """Return ``n`` new clients of one ``server`` with a slope of its own.

        Columns as of data set ``simulated``: client_id, label, group (n,) and curve
        (n, T); their ``group`` is each client itself, not the group of servers.
        """
        beta = draw_slope(generator, group_of(parameters, server))
        curves, labels = generate(generator, n, parameters.points, beta)
        return columns.client_columns(curves, labels)


def group_of(parameters: ServersParameters, server: int) -> int:
    """Return the group, 1 to 3, of server 0 to K - 1."""
    return int(np.searchsorted(np.cumsum(parameters.servers), server, "right")) + 1


def draw_slope(generator: Generator, group: int) -> FloatArray:
    """Draw the slope's coefficients on phi_1..phi_50, (50,), for a server of ``group``.

    Groups 1 and 3: gamma_j (-1)^(j+1) j^-2 with gamma_j uniform on [-8, -2] or [2, 8].
    Group 2: those of a Gaussian process with kernel exp(-15 |s - t|). A curve lies in
    the span of phi, so they alone decide the integral of X beta, for any grid; a
    trapezoid rule on the grid would add an error of its own.
    """
    if group == 2:
        normal = generator.standard_normal(len(DECAY))
        return np.asarray(_covariance_factor() @ normal)
    direction = -1.0 if group == 1 else 1.0
    gamma = generator.uniform(2.0, 8.0, len(DECAY))
    return np.asarray(direction * gamma * DECAY)


@lru_cache
def _covariance_factor() -> FloatArray:
    return np.asarray(np.linalg.cholesky(process_covariance()))


def process_covariance() -> FloatArray:
    """Return the covariance (50, 50) of a group 2 slope's coefficients, exactly.

    The image u of cos(w_n t), w_n = (n-1) pi, under the kernel exp(-a |s-t|) solves
    u'' = a^2 u - 2a cos(w_n s), u'(0) = a u(0), u'(1) = -a u(1). With l_n = a/(a^2 +
    w_n^2), p_n = (-1)^(n-1) and the norms s_1 = 1, s_n = sqrt(2) this gives C_mn =
    2 l_m [m = n] - s_m l_m s_n l_n (1 + p_m p_n) (1 - p_m e^-a).
    """
    w = np.pi * np.arange(len(DECAY))
    parity = (-1.0) ** np.arange(len(w))
    gain = _RATE / (_RATE**2 + w**2)
    edge = np.where(w == 0, 1.0, np.sqrt(2.0)) * gain
    ends = (1 + np.outer(parity, parity)) * (1 - parity * np.exp(-_RATE))
    return np.asarray(np.diag(2 * gain) - np.outer(edge, edge) * ends)


class DriftingParameters(Strict, title="Parameters"):
    """Settings of ``source:``: groups, and how far the law turns."""

    name: Literal["drifting"] = "drifting"
    points: Points = POINTS
    periods: WholeNumber = 6
    turn: Annotated[float, Field(ge=-180, le=180)] = 90.0
    since: Count = 3


class _DriftingCurves(_CurveFamily):
    Parameters = DriftingParameters

    def about(self, parameters: DriftingParameters) -> Facts:
        last, since = parameters.periods - 1, parameters.since
        when = (
            f"by {parameters.turn:g} degrees at {since}" if since <= last else "never"
        )
        return {
            "title": "Simulated curves whose slope turns",
            "notes": [f"Clients come in arrivals 0 to {last}; the slope turns {when}."],
            "periods": parameters.periods,  # groups are arrivals
        }

    def clients(
        self, parameters: DriftingParameters, n: int, generator: Generator
    ) -> ClientColumns:
        """Return ``n`` clients: client_id, label, group (n,) and curve (n, T).

        Client i belongs to arrival ``group`` = i mod periods. Curves and the uniforms
        behind the labels do not depend on ``turn``, ``since`` or ``periods``.
        """
        group = np.arange(n) % parameters.periods
        same = deepcopy(generator)
        curve, before = generate(generator, n, parameters.points)
        slope = rotated_slope(parameters.turn)
        _, after = generate(same, n, parameters.points, slope)
        label = np.where(group < parameters.since, before, after)
        return columns.client_columns(curve, label, group=group)


def rotated_slope(degrees: float) -> FloatArray:
    """Return the slope's coefficients (50,), rotated by ``degrees``.

    The logit is alpha0 + sum_j xi_j s_j with xi_j of variance 1 and s_j = zeta_j
    beta_j. (s_1, s_2) turns in its plane and the others stay, so the standard
    deviation of the logit stays too: the labels are about as hard to tell as before.
    """
    angle = np.deg2rad(degrees)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    head, tail = np.split(BETA, [2])
    return np.concatenate([turn @ (_ZETA[:2] * head) / _ZETA[:2], tail])


CURVES = _Curves()
SERVER_CURVES = _ServerCurves()
DRIFTING_CURVES = _DriftingCurves()
