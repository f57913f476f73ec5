"""A process that knows no curvote, and runs each stage in a child of its own.

It imports the stages, once for all children, and empties the caches that this filled:
what an import runs counts nowhere, and what a stage runs is seen again.

Run as a script with a pickle of jobs on standard input; prints, for each job, the
functions of curvote that ran: see `tests.traced`.
"""

import gc
import json
import os
import pickle
import sys
from collections.abc import Iterator, Sequence
from functools import _lru_cache_wrapper
from importlib import import_module
from typing import Any

from tests import traced

# None of ours: imported once for all children.
HEAVY = (
    *("numpy", "pandas", "scipy.stats", "skfda", "pyarrow.parquet", "skops.io"),
    *("pydantic.main", "pydantic.fields", "pydantic.types", "pydantic.json_schema"),
    *("sklearn.linear_model", "sklearn.ensemble", "sklearn.discriminant_analysis"),
    *("sklearn.compose", "sklearn.dummy"),
)


class Table:
    """A stored artifact without the store: facts, and columns by (table, place)."""

    def __init__(self, facts: dict[str, Any], columns: dict[Any, Any]) -> None:
        self.metadata = facts
        self._columns = columns

    def columns(
        self, table: str, place: tuple[int, ...], only: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Return one repetition's columns, or those that all share."""
        shared = self._columns.get((table, ()))
        found: dict[str, Any] = shared or self._columns[table, place]
        return found if only is None else {n: v for n, v in found.items() if n in only}

    def count(self, table: str, place: tuple[int, ...]) -> int:
        """Return that a repetition is one shard."""
        return 1

    def shard(
        self,
        table: str,
        place: tuple[int, ...],
        number: int,
        only: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Return the only shard."""
        return self.columns(table, place, only)

    def shards(
        self, table: str, place: tuple[int, ...], only: Sequence[str] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the only shard."""
        yield self.columns(table, place, only)

    def pieces(self, table: str) -> Iterator[dict[str, Any]]:
        """Yield the rows that all share."""
        yield self._columns[table, ()]


def run(job: dict[str, Any]) -> None:
    """Run the stage of a job, each of its repetitions."""
    inputs = {name: Table(*given) for name, given in job["inputs"].items()}
    params = job["params"]
    chain = import_module("curvote.chain.stage")
    stage = chain.stage_functions(job["module"])
    facts = stage.metadata(inputs, params) if hasattr(stage, "metadata") else {}
    context = chain.StageContext
    heres = [
        context(job["stage"], place, job["sizes"], inputs, params, facts)
        for place in job["places"]
    ]
    if job["places"] == ((),) and hasattr(stage, "shared_rows"):
        list(stage.shared_rows(inputs, params, facts))
    elif hasattr(stage, "batch"):
        list(stage.batch(heres))
    else:
        make_rows = import_module("curvote.chain.stage").make_rows
        _ = [list(make_rows(stage, each)) for each in heres]


def empty_caches() -> None:
    """Let no function be passed over since an import has had its answer before."""
    for each in gc.get_objects():
        if isinstance(each, _lru_cache_wrapper) and each.__module__.startswith("curv"):
            each.cache_clear()


def in_a_child(job: dict[str, Any]) -> list[traced.Function]:
    """Return the functions that run for a job in a fork of this process."""
    reading, writing = os.pipe()
    if not os.fork():
        with os.fdopen(writing, "w") as stream:
            json.dump(traced.functions(lambda: run(job)), stream)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        text = stream.read()
    if os.wait()[1]:
        raise SystemExit(f"{job['module']} failed")
    found: list[traced.Function] = json.loads(text)
    return found


def main() -> None:
    """Answer all jobs, in order."""
    for name in HEAVY:
        import_module(name)
    jobs = pickle.load(sys.stdin.buffer)
    strangers = [name for name in sys.modules if name.startswith("curvote")]
    if strangers:
        raise SystemExit(f"not a fresh process: {strangers}")
    for job in jobs:
        import_module(job["module"].partition(":")[0])
    empty_caches()
    json.dump([in_a_child(job) for job in jobs], sys.stdout)


if __name__ == "__main__":
    main()
