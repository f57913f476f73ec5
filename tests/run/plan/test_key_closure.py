"""A stage's key counts all code that can change its numbers.

That it counts what each stage imports stands in `tests/run/test_every_stage.py`.
"""

from __future__ import annotations

import ast
from contextlib import suppress
from pathlib import Path

import pytest

from curvote.mechanisms import make, registry
from curvote.mechanisms.registry import MAY_CALL, MECHANISMS
from curvote.run.plan import fingerprint
from curvote.run.plan.fingerprint import NEVER_COUNTED, PACKAGE, of_code
from curvote.run.project import Project
from tests import plain


def only_names(node: ast.stmt) -> bool:
    """Say whether a statement names things: text, imports, tables, lazy exports."""
    if isinstance(node, ast.If):
        return all(map(only_names, (*node.body, *node.orelse)))
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return node.value is None or is_table(node.value)
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return text or isinstance(node, ast.Import | ast.ImportFrom)


def is_table(value: ast.expr) -> bool:
    """Say whether a value is written out, or is `curvote.lazy.exports` of such."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "exports":
        value = value.args[1]
    try:
        ast.literal_eval(value)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("name", NEVER_COUNTED)
def test_files_that_never_count_hold_names_only(name: str) -> None:
    """Code in an ``__init__`` or a registry would change numbers without a trace."""
    files = sorted(PACKAGE.rglob(f"{name}.py"))
    assert len(files) > 3
    for path in files:
        body = ast.parse(path.read_text(encoding="utf-8")).body
        wrong = [ast.unparse(node) for node in body if not only_names(node)]
        assert wrong == [], path


def test_the_split_of_epsilon_is_in_the_key() -> None:
    """It stands behind a lazy export, and was forgotten once: epsilon d times over."""
    assert "curvote.mechanisms.coordinates" in of_code(["curvote.client.report"])


def test_a_change_of_the_split_makes_reports_stale(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With other code in it, plan computes the reports anew and says why."""
    plain.run(project)
    real = fingerprint._parsed

    def changed(path: Path, mtime: int, size: int) -> tuple[str, tuple[str, ...]]:
        digest, imports = real(path, mtime, size)
        return ("other" if path.stem == "coordinates" else digest), imports

    monkeypatch.setattr(fingerprint, "_parsed", changed)
    steps = {step.stage.name: step for step in plain.plan(project).steps}
    assert steps["privatize"].action == "run"
    assert "coordinates changed" in steps["privatize"].reason
    assert steps["project"].action == "reuse"


SAMPLED = plain.TINY | {"privatize": {"mechanism": "sampled"}}


@pytest.mark.parametrize("edited", ["hybrid", "duchi", "piecewise"])
def test_what_a_combinator_calls_by_name_is_in_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edited: str
) -> None:
    """An edit of `hybrid` under `sampled` draws the reports anew, and says why."""
    project = plain.write(tmp_path, tiny=SAMPLED)
    plain.run(project)
    real = fingerprint._parsed

    def changed(path: Path, mtime: int, size: int) -> tuple[str, tuple[str, ...]]:
        digest, imports = real(path, mtime, size)
        return ("other" if path.stem == edited else digest), imports

    monkeypatch.setattr(fingerprint, "_parsed", changed)
    steps = {step.stage.name: step for step in plain.plan(project).steps}
    assert steps["privatize"].action == "run"
    assert steps["privatize"].reason == f"code curvote.mechanisms.{edited} changed"
    assert steps["project"].action == "reuse"


def test_another_class_of_the_same_module_is_another_key(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A registry may name two classes of one module; which of them counts."""
    plain.run(project)
    other = {**MECHANISMS, "laplace": "curvote.mechanisms.laplace:Other"}
    monkeypatch.setattr(registry, "MECHANISMS", other)
    steps = {step.stage.name: step for step in plain.plan(project).steps}
    assert steps["privatize"].action == "run"
    assert "registry:MECHANISMS.laplace changed" in steps["privatize"].reason


def test_registries_say_all_that_combinators_may_call() -> None:
    """Whatever `sampled` can be built of counts with it."""
    assert {*MAY_CALL} == {
        name
        for name, path in MECHANISMS.items()
        if "curvote.mechanisms.making" in of_code([path.partition(":")[0]])
    }
    found = []
    for name in MECHANISMS:
        with suppress(Exception):
            make("sampled", epsilon=4.0, d=3, mechanism=name)
            found.append(name)
    assert {*found} <= {*MAY_CALL["sampled"]}
