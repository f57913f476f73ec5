"""Claims of other libraries, put to `curvote.falsify` in an environment of their own.

Run as ``python -m competitors.falsified LIBRARY``. What a library releases no more, or
needs too much beside it, is rebuilt from its source in ``rebuilt``: a few lines each,
with what is wrong in them and where that was said.
"""

from __future__ import annotations

import json
import math
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from curvote import falsify

RUNS = 40_000
FIT_RUNS = 3000  # of a model, at a millisecond each
Case = tuple[str, Callable[..., Any], Any, dict[str, Any]]


def rebuilt() -> Iterator[Case]:
    rng = np.random.default_rng()
    yield (
        "NumPy: value + laplace(), as tutorials have it (Mironov 2012)",
        lambda x, n: x + rng.laplace(size=n),
        (0.0, 1.0),
        {},
    )

    def unary(x: int, d: int = 4, epsilon: float = 1.0) -> Any:
        # pure-ldp before 1.2.0: the true bit is left to the noise where it is not kept.
        keep = math.exp(epsilon / 2) / (math.exp(epsilon / 2) + 1)
        bits = np.random.choice([1, 0], size=d, p=[1 - keep, keep])  # noqa: NPY002
        if random.random() < keep:
            bits[x] = 1
        return bits

    yield "pure-ldp < 1.2.0: UEClient (its issue 11)", unary, [0, 1, 2, 3], {}

    def local_dp_mod(update: Any, epsilon: float = 1.0, delta: float = 1e-5) -> Any:
        # Flower before 1.14: what the noise returns is thrown away, the log says that
        # it was added.
        clipped = update * min(1.0, 1.0 / float(np.linalg.norm(update)))
        deviation = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
        _ = clipped + np.random.normal(0, deviation, clipped.shape)  # noqa: NPY002
        return clipped

    updates = np.array([0.3, 0.1, -0.2]), np.array([-0.3, 0.4, 0.1])
    yield (
        "Flower: LocalDpMod before its pull request 4677",
        local_dp_mod,
        updates,
        {"delta": 1e-5, "runs": FIT_RUNS},
    )


def diffprivlib() -> Iterator[Case]:
    from diffprivlib import mechanisms, models, tools

    warnings.simplefilter("ignore")

    def regression(low: float) -> Callable[..., Any]:
        def fit(rows: Any) -> Any:
            model = models.LinearRegression(
                epsilon=1, bounds_X=(low, 100), bounds_y=(0, 1), fit_intercept=False
            )
            return model.fit(rows[:, :1], rows[:, 1]).coef_

        return fit

    small = np.array([[1.0, 0.0], [1.0, 0.5]])
    tables = small, np.array([[100.0, 0.0], [1.0, 0.5]])
    runs = {"runs": FIT_RUNS}
    name = "models.LinearRegression, bounds of X from 0 (its issue 105)"
    yield name, regression(0), tables, runs
    yield "the same, bounds from -100", regression(-100), tables, runs
    laplace = mechanisms.Laplace(epsilon=1, sensitivity=1)
    yield "mechanisms.Laplace", laplace.randomise, (0.0, 1.0), {}
    truncated = mechanisms.LaplaceTruncated(epsilon=1, sensitivity=1, lower=0, upper=1)
    yield "mechanisms.LaplaceTruncated", truncated.randomise, (0.0, 1.0), {}
    gaussian = mechanisms.GaussianAnalytic(epsilon=1, delta=1e-5, sensitivity=1)
    claim = {"delta": 1e-5}
    yield "mechanisms.GaussianAnalytic", gaussian.randomise, (0.0, 1.0), claim
    snapping = mechanisms.Snapping(epsilon=1, sensitivity=1, lower=0, upper=1)
    yield "mechanisms.Snapping", snapping.randomise, (0.0, 1.0), {}
    geometric = mechanisms.Geometric(epsilon=1, sensitivity=9)
    yield "mechanisms.Geometric", geometric.randomise, (0, 9), {}
    binary = mechanisms.Binary(epsilon=1, value0="a", value1="b")
    yield "mechanisms.Binary", binary.randomise, ["a", "b"], {}
    mean = np.linspace(0, 1, 5)
    yield (
        "tools.mean",
        lambda rows: tools.mean(rows, epsilon=1, bounds=(0, 1)),
        (mean, np.append(mean[:-1], 0.0)),
        {"runs": FIT_RUNS},
    )


def pure_ldp() -> Iterator[Case]:
    from pure_ldp.frequency_oracles import (
        DEClient,
        HadamardMechClient,
        HEClient,
        RAPPORClient,
        UEClient,
    )

    def index(x: int) -> int:
        return x

    words, d = [0, 1, 2, 3], 4
    for kind in (DEClient, UEClient, HEClient):
        client = kind(1.0, d, index_mapper=index)
        yield kind.__name__, client.privatise, words, {}
    hadamard = HadamardMechClient(1.0, d, 2, index_mapper=index)
    yield "HadamardMechClient, as it returns", hadamard.privatise, words, {}
    yield (
        "HadamardMechClient, as a list",
        lambda x: [*hadamard.privatise(x)],
        words,
        {},
    )
    rappor = RAPPORClient(0.0, 16, [[int]], num_of_cohorts=1, index_mapper=index)
    rappor.f = rappor.convert_eps_to_f(1.0)
    yield "RAPPORClient, f by convert_eps_to_f", rappor.privatise, words, {}


def multi_freq_ldpy() -> Iterator[Case]:
    from multi_freq_ldpy.mdim_freq_est.RSpFD_solution import RSpFD_GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.HE import HE_Client
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client

    k, words = 10, (0, 9)
    for client in (GRR_Client, UE_Client):
        yield client.__name__, lambda x, c=client: c(x, k, 1.0), words, {}
    yield "SS_Client, as it returns", lambda x: SS_Client(x, k, 1.0), words, {}
    yield "SS_Client, sorted", lambda x: sorted(SS_Client(x, k, 1.0)), words, {}
    yield "HE_Client", lambda x: HE_Client(x, 2, 1.0), (0, 1), {}
    yield (
        "RSpFD_GRR_Client, three attributes",
        lambda x: RSpFD_GRR_Client(x, [2, 2, 2], 3, 1.0),
        ([0, 0, 0], [1, 1, 1]),
        {},
    )


def opendp() -> Iterator[Case]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    line = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    yield "make_laplace", dp.m.make_laplace(*line, scale=1.0), (0.0, 1.0), {}
    bits = dp.m.make_randomized_response_bool(prob=math.e / (1 + math.e))
    yield "make_randomized_response_bool", bits, [False, True], {}
    steps = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    yield "make_geometric", dp.m.make_geometric(*steps, scale=9.0), (0, 9), {}


LIBRARIES: dict[str, Callable[[], Iterator[Case]]] = {
    "rebuilt": rebuilt,
    "diffprivlib": diffprivlib,
    "pure_ldp": pure_ldp,
    "multi_freq_ldpy": multi_freq_ldpy,
    "opendp": opendp,
}


def main(library: str) -> None:
    for name, call, inputs, options in LIBRARIES[library]():
        claim = {"epsilon": 1.0, "runs": RUNS, **options}
        result = falsify(call, inputs, **claim)
        print(json.dumps({"name": name, **result.to_json()}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
