"""A stage's key counts all code that can change its numbers, and little else.

That it counts what each stage runs stands in `tests/run/test_every_stage.py`, what a
definition is in `tests/run/plan/test_definitions.py`.
"""

import ast
import inspect
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.registry import Registry
from curvote.mechanisms import make, registry
from curvote.mechanisms.factory import mechanism_class
from curvote.mechanisms.registry import MECHANISMS
from curvote.pipeline.config.project import Project
from curvote.pipeline.plan.definitions import PACKAGE, of_code, parse
from curvote.pipeline.plan.step import differences
from tests import plain
from tests.edited import edit_function
from tests.traced import functions, missing_functions


def only_names(node: ast.stmt) -> bool:
    """Say whether a statement names things: text, imports, tables, lazy exports."""
    if isinstance(node, ast.If):
        return all(map(only_names, (*node.body, *node.orelse)))
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return node.value is None or is_table(node.value)
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return text or isinstance(node, ast.Import | ast.ImportFrom)


def is_table(value: ast.expr) -> bool:
    """Say whether a value is written out, or is `curvote.base.lazy.exports` of such."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "exports":
        value = value.args[1]
    try:
        ast.literal_eval(value)
    except ValueError:
        return False
    return True


# What is called at the import of the whole package, for models of former versions.
AT_IMPORT = {"install()"}


def test_packages_hold_names_only() -> None:
    """Code in an ``__init__`` would change numbers without a trace."""
    files = sorted(PACKAGE.rglob("__init__.py"))
    assert len(files) > 3
    for path in files:
        body = ast.parse(path.read_text(encoding="utf-8")).body
        wrong = {ast.unparse(node) for node in body if not only_names(node)}
        assert wrong <= AT_IMPORT, path


def test_of_a_registry_all_but_its_tables_counts() -> None:
    """A further entry of a registry recomputes nothing; its code counts."""
    module = parse("curvote.x.registry", 'TABLE = {"a": "b"}\ndef f():\n    return 1\n')
    assert set(module.definitions) == {"f"}


SAMPLED = plain.FEW | {"privatize": {"mechanism": "sampled"}}


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a finished study whose reports are drawn by `sampled`."""
    project = plain.write(tmp_path_factory.mktemp("sampled"), tiny=SAMPLED)
    plain.run(project)
    return project


@pytest.mark.parametrize(
    "edited",
    [
        "coordinates:Sampled.__init__",
        "coordinates:PerCoordinate._draw",
        "piecewise:Hybrid._draw",
        "duchi:Duchi._draw",
        "piecewise:Piecewise.__init__",
    ],
)
def test_what_a_combinator_calls_by_name_is_in_the_key(
    sampled: Project, monkeypatch: pytest.MonkeyPatch, edited: str
) -> None:
    """An edit of `hybrid` under `sampled` draws the reports anew, and says why.

    So does one of the coordinates that it fills, and of the parts of `hybrid`.
    """
    edit_function(monkeypatch, f"curvote.mechanisms.{edited}")
    steps = {step.stage.name: step for step in plain.plan(sampled).steps}
    name = edited.replace(":", ".")
    assert steps["privatize"].reason == f"code curvote.mechanisms.{name} changed"
    assert steps["project"].action == "reuse"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a finished study by one learner, `centroid`, with Laplace noise."""
    project = plain.write(tmp_path_factory.mktemp("finished"), tiny=plain.FEW)
    plain.run(project)
    return project


@pytest.mark.parametrize(
    ("edited", "stages"),
    [
        ("curves.basis:_products", {"project"}),
        # Behind a lazy export; forgotten once: epsilon d times over.
        ("mechanisms.coordinates:per_coordinate", {"privatize"}),
        # The row `histogram` of the scores reads what a report is.
        ("mechanisms.laplace:Laplace._draw", {"privatize", "report"}),
        ("mechanisms.exact:DiscreteLaplace.sample", {"privatize", "report"}),
        ("learning.votes:draw_subsets", {"train"}),
        ("learning.learners.discriminants:fit_conjugate_gradients", {"train"}),
        ("learning.votes:averaging_weights", {"aggregate"}),
        ("systems.mrma.stages:mean_errors", {"report"}),
        # In modules that a stage imports, and by no stage reached.
        ("learning.votes:decline_of_votes", set()),
        ("learning.learners.margins:fit_logistic", set()),
        ("mechanisms.piecewise:Hybrid._draw", set()),
        ("systems.mrma.system:describe_histogram", set()),
    ],
)
def test_an_edit_of_a_function_reruns_what_reaches_it(
    finished: Project, monkeypatch: pytest.MonkeyPatch, edited: str, stages: set[str]
) -> None:
    """With the function's name as the reason; what it does not touch is reused."""
    edit_function(monkeypatch, f"curvote.{edited}")
    made = plain.plan(finished).steps_to_run()
    reasons = {step.stage.name: step.reason for step in made}
    changed = f"code curvote.{edited.replace(':', '.')} changed"
    assert {name for name, said in reasons.items() if said == changed} == stages
    later = {said for said in reasons.values() if said != changed}
    assert all(said.startswith("input ") for said in later)
    assert bool(made) == bool(stages)


def test_a_key_of_whole_modules_is_said_once(done: Project) -> None:
    """As earlier versions made them: no list of all that a stage reaches."""
    step = plain.plan(done).steps[-1]
    before = step.components | {
        "code": dict.fromkeys(step.components["code"], "0" * 64)
    }
    said = "an earlier curvote stored it under another kind of key"
    assert list(differences(before, step.components)) == [said]


def test_what_another_plug_in_reaches_is_no_reason_of_its_own(
    finished: Project,
) -> None:
    """The setting that names it is; else a reason would be each of its functions."""
    steps = plain.plan(finished, "tiny", "privatize.mechanism=hybrid").steps
    (row,) = (step.row() for step in steps if step.stage.name == "privatize")
    assert row["reasons"] == ["parameter privatize.mechanism laplace -> hybrid"]


def test_another_class_of_the_same_module_is_another_key(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A registry may name two classes of one module; which of them counts."""
    plain.run(project)
    other = {**MECHANISMS, "laplace": "curvote.mechanisms.laplace:Other"}
    monkeypatch.setattr(registry, "MECHANISMS", Registry("mechanism", other))
    steps = {step.stage.name: step for step in plain.plan(project).steps}
    assert steps["privatize"].action == "run"
    assert "registry:MECHANISMS.laplace changed" in steps["privatize"].reason


def test_registries_say_all_that_combinators_may_call() -> None:
    """Whatever `sampled` can be built of counts with it."""
    assert {name for name in MECHANISMS if len(MECHANISMS.reach(name)) > 1} == {
        name
        for name, path in MECHANISMS.items()
        if "curvote.mechanisms.factory" in of_code([path])
    }
    found = []
    for name in MECHANISMS:
        with suppress(Exception):
            make("sampled", epsilon=4.0, d=3, mechanism=name)
            found.append(name)
    assert {*found} <= {*MECHANISMS.reach("sampled")}


MADE_WITH = {"d": 6, "n_classes": 3, "delta": 1e-6, "p": 0.4, "q": 0.3}
MADE_WITH |= {"prior": (0.5, 0.25, 0.25)}


@pytest.mark.parametrize("name", MECHANISMS)
def test_all_that_a_mechanism_runs_is_reached_from_its_entry(name: str) -> None:
    """As a stage's plug-in: its entry, and what that may call by name."""
    wanted = inspect.signature(mechanism_class(name)).parameters
    params = {key: value for key, value in MADE_WITH.items() if key in wanted}
    entries = [MECHANISMS[each] for each in MECHANISMS.reach(name)]
    roots = ("curvote.mechanisms.factory:make", "curvote.base.entropy:SeededEntropy")

    def draw() -> None:
        mechanism: Any = make(name, epsilon=1.0, **params)
        values = np.zeros((5, 6)) if "d" in wanted else np.zeros(5, int)
        mechanism.randomize(values + (name == "binary_rr"), SeededEntropy(1))

    run = functions(draw)
    assert len(run) > 3
    assert missing_functions(run, of_code([*roots, *entries]), {}) == []
