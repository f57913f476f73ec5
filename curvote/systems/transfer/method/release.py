"""Release of one server: noised sums over its records, once, for all queries."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import errors, privacy, validate
from curvote.base.entropy import Entropy, SeededEntropy, StudyStreams, SystemEntropy
from curvote.mechanisms.gaussian import GaussianNoise
from curvote.systems.transfer.method.task import OWN_RELEASE, Task, form
from curvote.wire.strict_json import canonical_json, parse_json

Steps = NDArray[np.int64]
LARGEST = 1 << 26
# An honest number lies beyond what the noise reaches less often than that.
RARE_PROBABILITY = 1e-30


@dataclass(frozen=True, eq=False)
class Release:
    """Noised numbers of one server, (epsilon, delta)-private for each record.

    Parameters
    ----------
    values : array (length,)
        Whole steps.
    sigma : float
        The noise's standard deviation in the same unit.
    n : int
        The number of records, which is public.
    budget : Budget or None
        None where the task's level is ``public`` or ``own``: there is no noise.
    server : str
        Whose it is.
    task : str
        The digest of what the server was asked (`Task.for_server`).
    kept : bool, default=False
        Whether they are a server's own, which never leave it.

    Examples
    --------
    >>> from curvote.transfer import Task, release
    >>> task = Task([("age", 20, 90)], classes=("no", "yes"), servers={"a": 1})
    >>> sent = release(task, "a", [[30], [50], [70]], ["no", "no", "yes"])
    >>> print(sent.server, sent.n, sent.budget)
    a 3 epsilon 1, delta 0.111111
    """

    values: Steps
    sigma: float
    n: int
    budget: privacy.Budget | None
    server: str
    task: str = field(repr=False)
    kept: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the release as plain JSON; a target's own is a UserError."""
        if self.kept:
            raise errors.UserError(
                f"server {self.server} keeps its own records (epsilon: own): these sums"
                " have no noise and are never written."
            )
        return {
            "server": self.server,
            "n": self.n,
            "values": self.values.tolist(),
            "task": self.task,
        }

    def write(self, path: Path) -> None:
        """Write the release to a file; an existing file is not overwritten."""
        text = canonical_json(self.to_json())
        with Path(path).open("xb") as stream:
            stream.write(text + b"\n")

    @classmethod
    def read(cls, path: Path, task: Task) -> Release:
        """Read a release for ``task``.

        UserError: no such file, another task, a shape, a number or a count of records
        that no honest server can send.
        """
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise errors.UserError(f"{path}: {error.strerror or error}.") from None
        try:
            return cls.of(parse_json(data, LARGEST), task)
        except errors.UserError as error:
            raise errors.UserError(f"{path}: {error}") from None

    @classmethod
    def of(cls, document: Any, task: Task) -> Release:
        """Build the release that `to_json` wrote, for ``task``."""
        keys = {"server", "n", "values", "task"}
        if not isinstance(document, dict) or set(document) != keys:
            raise errors.UserError(
                f"not a release: it must hold {', '.join(sorted(keys))}."
            )
        server_task = task.for_server(str(document["server"]))
        if document["task"] != server_task.digest():
            raise errors.UserError(
                f"a release for task {str(document['task'])[:12]}; server"
                f" {server_task.server} is asked {server_task.digest()[:12]}: other"
                " bounds, classes, form or budget, or an older task."
            )
        if server_task.epsilon == OWN_RELEASE:
            raise errors.UserError(
                f"server {server_task.server} keeps its own: no file holds it."
            )
        return check_release(server_task, document["n"], document["values"])


def release_noise(server_task: Task, n: int) -> GaussianNoise | None:
    """Return the noise of a release about ``n`` records, None without noise."""
    if not server_task.servers[server_task.server].noised:
        return None
    return form(server_task.release).noise(server_task, server_task.cost(n))


def release(
    task: Task, server: str, X: ArrayLike, y: ArrayLike, entropy: Entropy | None = None
) -> Release:
    """Return the one release of ``server`` about its records.

    Parameters
    ----------
    task : curvote.transfer.Task
        What the servers are asked.
    server : str
        Which of them this is.
    X : array (n, d)
        Its records; columns are in the order of ``task.features``.
    y : array (n,)
        Labels among the task's classes; a class may be missing.
    entropy : Entropy or None, default=None
        None draws from the operating system. With a seeded one the noise depends on
        task, server and seed, never on the records.

    Returns
    -------
    Release
        All that leaves the server.

    Raises
    ------
    UserError
        And nothing is drawn: another width, NaN, an unknown label, no record, a delta
        above 1/n.

    Examples
    --------
    >>> from curvote.transfer import Task
    >>> task = Task([("age", 20, 90)], classes=("no", "yes"), servers={"a": 1})
    >>> sent = release(task, "a", [[30], [50], [70]], ["no", "no", "yes"])
    >>> sent.to_json()["n"]  # all that leaves the server: noised sums, and n
    3
    """
    server_task = task.for_server(server)
    cube, codes = task.cube(X), task.codes(y)
    if not len(cube) or codes.shape != (len(cube),):
        raise errors.UserError(f"{len(codes)} labels for {len(cube)} records.")
    noise = release_noise(server_task, len(cube))
    sums = form(task.release).sums(server_task, cube, codes)
    if noise:
        sums = noise.add(sums, server_stream(entropy or SystemEntropy(), server_task))
    return _build_release(server_task, len(cube), sums, noise)


def check_release(server_task: Task, n: Any, values: Any) -> Release:
    """Return a received release, checked against the server's own task.

    UserError: a count of records that does not fit delta, another number of values, or
    values that no honest server can send.
    """
    n, numbers = validate.at_least(1, n=n), np.asarray(values)
    try:
        noise = release_noise(server_task, n)
    except errors.UserError as error:
        raise errors.UserError(f"n is {n}, which does not fit delta: {error}") from None
    kind = form(server_task.release)
    length = kind.length(server_task)
    if numbers.dtype.kind != "i" or numbers.shape != (length,):
        raise errors.UserError(
            f"no server can have sent these values: {length} whole numbers are asked"
            f" for, and {numbers.size} values came."
        )
    reach = noise.reach(RARE_PROBABILITY) if noise else 0
    largest = math.ceil(n * kind.sensitivity(server_task)) + reach
    if not (np.abs(numbers) <= largest).all():
        raise errors.UserError(
            f"no server can have sent these values: with {n} records and this noise"
            f" none is above {largest} in size."
        )
    return _build_release(server_task, n, numbers.astype(np.int64), noise)


def _build_release(
    server_task: Task, n: int, steps: Steps, noise: GaussianNoise | None
) -> Release:
    """Return a release with its budget and origin."""
    return Release(
        steps,
        noise.sigma if noise else 0.0,
        n,
        budget=server_task.cost(n) if noise else None,
        server=server_task.server,
        task=server_task.digest(),
        kept=server_task.epsilon == OWN_RELEASE,
    )


def server_stream(entropy: Entropy, server_task: Task) -> Entropy:
    """Return the server's own stream of a seeded source: others share no noise.

    Any other source is taken word for word: what protects somebody is not turned into
    a seed.
    """
    if not isinstance(entropy, SeededEntropy | StudyStreams):
        return entropy
    words = [int(word) for word in entropy.words(4)]
    digest = int(server_task.digest(), 16)
    return SeededEntropy(np.random.SeedSequence([*words, digest]))
