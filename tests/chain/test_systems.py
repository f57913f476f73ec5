"""The systems together: one name is one thing, and every hook is there."""

import ast
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from curvote.base.errors import InternalError
from curvote.chain import stage as streams
from curvote.chain.axis import EPSILON
from curvote.chain.commands import system_commands
from curvote.chain.lookup import all_systems
from curvote.chain.registry import DEFAULT, SYSTEMS
from curvote.chain.stage import Stage, stage_functions
from curvote.chain.system import System
from curvote.messages.message import messages_of
from curvote.systems.common.declarations import learning_system
from curvote.systems.direct import system as direct

CURVOTE = Path(__file__).parents[2] / "curvote"
# Who takes the name of a stream, and where it may stand among the arguments.
TAKERS = {"generator", "sequence", "noise", "client_streams", "stream", "of"}


def _once(every: Iterable[Any]) -> dict[str, Any]:
    """Return things by their names; two things of one name are an error."""
    found: dict[str, Any] = {}
    for each in every:
        assert found.setdefault(each.name, each) == each, f"two are named {each.name}"
    return found


@pytest.mark.parametrize("kind", ["tables", "methods", "metrics", "axes", "index"])
def test_a_name_is_one_thing_in_all_systems(kind: str) -> None:
    """A table read by its name has the same columns, whoever made it."""
    found = _once(each for one in all_systems() for each in getattr(one, kind))
    assert found


def test_methods_have_a_place_of_their_own() -> None:
    """Tables and legends have one order."""
    methods = _once(each for one in all_systems() for each in one.methods).values()
    ranks = sorted(method.rank for method in methods)
    assert all(one < other for one, other in pairwise(ranks))


def test_a_stage_stands_on_one_side() -> None:
    """Where an artifact is kept does not depend on who asks."""
    sides: dict[str, str] = {}
    for stage in (stage for one in all_systems() for stage in one.all_stages):
        assert sides.setdefault(stage.name, stage.side) == stage.side


def _words() -> Iterator[str]:
    """Yield every text that is passed to something that takes a stream's name."""
    for path in CURVOTE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func).rpartition(".")[2]
                given = [*node.args, *(k.value for k in node.keywords)]
                texts = (g.value for g in given if isinstance(g, ast.Constant))
                if called in TAKERS:
                    yield from (text for text in texts if isinstance(text, str))


def test_no_two_streams_have_one_number() -> None:
    """Stages and purposes, published or not: equal numbers would be equal noise."""
    stages = {stage.name for one in all_systems() for stage in one.all_stages}
    purposes = {*_words(), "words", "feature_noise"}
    assert {"split", "shuffle", "simulate", "vote"} <= purposes
    for names, published in (
        (stages, streams.STAGES),
        (purposes, streams.PURPOSES),
    ):
        every = {*names, *published}
        numbers = {streams._stream_number(name, published) for name in every}
        assert len(numbers) == len(every)
        assert (
            max(published.values()) < 1 << 31 <= min(map(streams.derived_number, every))
        )


@pytest.fixture(params=all_systems(), ids=lambda one: one.name)
def system(request: pytest.FixtureRequest) -> System:
    """Return each of the systems."""
    found: System = request.param
    return found


def test_a_system_is_what_its_package_says(system: System) -> None:
    """Its name is the registry's; its messages are found without it."""
    package = SYSTEMS[system.name]
    module = import_module(f"{package}.system")
    assert system in getattr(module, "SYSTEMS", ()) or module.SYSTEM is system
    assert system.messages == messages_of(system.name)
    assert issubclass(system.settings, BaseModel)
    assert DEFAULT in SYSTEMS


def _declared(stage: Stage) -> set[str]:
    functions = stage_functions(stage.module)
    made_by = ("body", "portions", "batch", "shard")
    return {name for name in made_by if hasattr(functions, name)}


def test_every_stage_can_be_made(system: System) -> None:
    """Its module is there and has one of its functions; so have its registries."""
    for stage in system.all_stages:
        assert _declared(stage), stage.module
        if stage.collected:
            assert vars(stage_functions(stage.collected))
        for registry, _ in stage.plugins:
            place, _, table = registry.partition(":")
            for entry in getattr(import_module(place), table).values():
                assert import_module(str(entry).partition(":")[0])


@pytest.mark.parametrize("chain", ["stages", "production"])
def test_every_stage_reads_what_stands_before_it(system: System, chain: str) -> None:
    """Inputs, axes and indices are the system's own."""
    axes = {axis.name for axis in system.axes} | {EPSILON.name}
    index = {each.name for each in system.index}
    before: list[str] = []
    for stage in getattr(system, chain):
        earlier = {name for name in stage.inputs if "@" not in name}
        later = {name.partition("@")[0] for name in stage.inputs} - earlier
        assert earlier <= set(before), stage.name
        assert later <= {each.name for each in getattr(system, chain)}
        assert set(stage.axes) <= axes
        assert set(stage.index or ()) <= index
        assert not stage.message or stage.message in system.messages
        before.append(stage.name)


def test_what_stands_in_a_headline_is_measured(system: System) -> None:
    """Main methods are declared, and a note stands beside a metric that is there."""
    methods = {method.name for method in system.methods}
    metrics = {metric.name for metric in system.metrics}
    assert set(system.main) <= methods
    assert {metric.beside for metric in system.metrics} <= metrics | {""}


def test_every_command_is_there() -> None:
    """A verb of a system names a function of its own, and no two have one verb."""
    verbs = [verb for verb, function in system_commands() if callable(function)]
    assert "advise" in verbs
    assert len(set(verbs)) == len(verbs)


def test_a_message_without_a_release_cannot_be_declared() -> None:
    """In production no stage of a study draws what leaves clients."""
    stages, other = (direct.PRIVATIZE, direct.AGGREGATE), direct.SCORE
    with pytest.raises(InternalError, match="stage privatize has no release"):
        learning_system("direct", direct.Settings, stages, "mean", releases=(other,))
