"""Draws of a call: alone, between two others, in children; or of a command."""

import gc
import inspect
import random
import subprocess
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from curvote.audit.outcomes import Columns, Raised, aligned, outcome_columns
from curvote.base.errors import InternalError, UserError
from curvote.checks.child import run_in_child

# Draws of each child and of each call that takes a count, or more, so that there are
# not too many of them.
PER_CHILD, MOST_BLOCKS = 64, 16
FEW = 5  # draws of a call that stands between others
# How many objects that a call refers to are searched for generators.
MOST_OBJECTS = 200_000

Draw = Callable[[Any, int], list[Any]]
ToColumns = Callable[[Sequence[Any]], Columns]


class Caller:
    """The call as draws: outcomes of a record, and how many were made.

    Outcomes of several records are drawn in one random order: what changes from call
    to call whatever the record is (a counter, a clock) tells none of them.
    """

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call, self.takes_count, self.runs = call, takes_count(call), 0
        self._order = np.random.default_rng(0)  # of the calls, not of what they draw

    def outputs(self, record: Any, n: int) -> list[Any]:
        """Return ``n`` outcomes; what is raised is one."""
        self.runs += n
        if not self.takes_count:
            return [self._attempt(record) for _ in range(n)]
        outputs = self._attempt(record, n)
        if isinstance(outputs, Raised):
            return [outputs] * n
        if not hasattr(outputs, "__len__") or len(outputs) != n:
            raise UserError(f"call(record, n) must return n outputs, here {n}.")
        return [*outputs]

    def columns(self, records: Sequence[Any], n: int) -> list[Columns]:
        """Return ``n`` outcomes of each record as columns."""
        block = max(PER_CHILD, n // MOST_BLOCKS) if self.takes_count else 1
        return self.interleaved(self.outputs, records, n, outcome_columns, block=block)

    def interleaved(
        self,
        draw: Draw,
        records: Sequence[Any],
        n: int,
        columns: ToColumns,
        *,
        block: int = 1,
    ) -> list[Columns]:
        """Return ``n`` draws of each record as columns, drawn in a random order.

        In calls for ``block`` of them, where a call takes a count.
        """
        sizes = [block] * (n // block) + [n % block] * (n % block > 0)
        places = [(i, size) for i in range(len(records)) for size in sizes]
        drawn_outcomes: list[list[Any]] = [[] for _ in records]
        for at in self._order.permutation(len(places)):
            i, size = places[at]
            drawn_outcomes[i] += draw(records[i], size)
        return [columns(outcomes) for outcomes in drawn_outcomes]

    def between(self, public: Any, record: Any, n: int) -> list[Any]:
        """Return outcomes of a record, each between two of a public one."""
        parts = [self.outputs(x, n) for x in (public, record, public)]
        return [*zip(*parts, strict=True)]

    def in_child(self, public: Any, anew: bool, record: Any, n: int) -> list[Any]:
        """Return outcomes in a child of a fork, between its parent's and a sibling's.

        In children generators of NumPy and `random` are seeded ``anew``: whoever forks
        has to do that, whereas nobody can for what a library keeps of its own.
        """
        generators = self._generators if anew else ()
        parts: list[Any] = [
            _forked(partial(self.outputs, x, n), n, generators)
            for x in (record, public)
        ]
        self.runs += 2 * n  # a child counts for itself alone
        return [*zip(self.outputs(public, n), *parts, strict=True)]

    @cached_property
    def _generators(self) -> list[Any]:
        """All generators of NumPy and `random`: of the process, and of the call."""
        kinds = (np.random.BitGenerator, random.Random)
        # What was frozen is not listed, and is reached from the call alone.
        reached: dict[int, Any] = {}
        layer: list[Any] = [self._call]
        while layer and len(reached) < MOST_OBJECTS:
            reached |= {id(o): o for o in layer}
            referents = {id(o): o for o in gc.get_referents(*layer)}
            layer = [o for key, o in referents.items() if key not in reached]
        objects = {id(o): o for o in gc.get_objects()} | reached
        return [o for o in objects.values() if issubclass(type(o), kinds)]

    def _attempt(self, *arguments: Any) -> Any:
        try:
            return self._call(*arguments)
        except Exception as error:  # noqa: BLE001 - an outcome like any other
            return Raised(type(error).__name__, str(error))


def run_command(words: list[str], record: str) -> dict[str, Any]:
    """Return all that a command shows for a record, instead of {} or on its stdin."""
    filled = [word.replace("{}", record) for word in words]
    text = record.encode() if filled == words else b""
    done = subprocess.run(filled, input=text, capture_output=True, check=False)
    return {"exit": done.returncode, "stdout": done.stdout, "stderr": done.stderr}


def takes_count(call: Callable[..., Any]) -> bool:
    """Return whether a call takes the number of draws after the record."""
    try:
        parameters = [*inspect.signature(call).parameters.values()]
    except (TypeError, ValueError):
        return False
    places = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )
    second = [p for p in parameters if p.kind in places][1:2]
    return any(p.default is p.empty or p.name == "n" for p in second)


def _forked(
    make: Callable[[], Sequence[Any]], n: int, generators: Sequence[Any]
) -> Sequence[Any]:
    """Return what a child makes, in which these generators were seeded anew."""

    def seed_and_make() -> Sequence[Any]:
        for generator in generators:
            if isinstance(generator, random.Random):
                generator.seed()
            else:
                generator.state = type(generator)().state
        return make()

    with warnings.catch_warnings():
        # Of threads at a fork, which a child that only draws leaves alone.
        warnings.simplefilter("ignore")
        try:
            return run_in_child(seed_and_make)
        except InternalError:
            return [Raised("no answer", "of a child")] * n


def compared_columns(triples: Sequence[Any]) -> Columns:
    """Return the columns of outcomes, and less and plus those before and after them."""
    before, columns, after = map(outcome_columns, zip(*triples, strict=True))
    result = dict(columns)
    for word, other in (("before", before), ("after", after)):
        sides = aligned(columns, other)
        for name, values in sides[0].items():
            with np.errstate(all="ignore"):
                result[f"{name} less that {word}"] = values - sides[1][name]
                result[f"{name} plus that {word}"] = values + sides[1][name]
    return result
