"""Benchmarks remember: what is kept of a run, and what counts as worse."""

import json
import subprocess
from pathlib import Path

import pytest

from benchmarks import draw_history, history, run_all
from tests.house import ROOT


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a repository of its own, with one script that measures a file's number."""
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "bench_one.py").write_text(
        "import sys; from pathlib import Path\n"
        "import benchmarks.history as history\n"
        f"history.MEASURED = Path({str(tmp_path / 'build')!r})\n"
        "path = Path('numbers'); first, *rest = path.read_text().split()\n"
        "path.write_text(' '.join(rest or [first]))\n"
        "sys.exit(history.record('one', {'a': float(first)}, bounds={'a': 9}))\n"
    )
    for module in (history, run_all):
        monkeypatch.setattr(module, "ROOT", tmp_path)
        monkeypatch.setattr(module, "MEASURED", tmp_path / "build")
    for module in (history, draw_history):
        monkeypatch.setattr(module, "KEPT", folder / "history")
    monkeypatch.setattr(draw_history, "FIGURE", tmp_path / "figure.png")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    git(tmp_path, "init", "--quiet")
    return tmp_path


def git(folder: Path, *words: str) -> None:
    """Run git as somebody."""
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True)


def kept(project: Path, numbers: str) -> tuple[int, list[float]]:
    """Run the script on numbers; return the exit code and the ratios on record."""
    (project / "numbers").write_text(numbers)
    code = run_all.main(["one", "--"])
    lines = (project / "benchmarks/history/one.jsonl").read_text().splitlines()
    return code, [json.loads(line)["ratios"]["a"] for line in lines]


def commit(project: Path) -> None:
    """Commit all."""
    git(project, "add", "-A")
    git(project, "commit", "--quiet", "-m", "x")


def test_a_ratio_that_is_worse_twice_fails_and_is_kept(project: Path) -> None:
    """Held against the last committed line: once is chance, a commit accepts it."""
    assert kept(project, "1") == (0, [1])
    assert kept(project, "2") == (0, [1, 2])  # nothing is committed yet
    commit(project)
    assert kept(project, "2.1") == (0, [1, 2, 2.1])
    assert kept(project, "2.3 2.1") == (0, [1, 2, 2.1, 2.1])
    assert kept(project, "2.3 2.3") == (1, [1, 2, 2.1, 2.1, 2.3])
    commit(project)
    assert kept(project, "2.3")[0] == 0
    assert (project / "figure.png").stat().st_size > 1000


def test_a_missed_bound_fails_whatever_was_before(project: Path) -> None:
    """The script's own exit code counts, and the line is kept."""
    assert kept(project, "10") == (1, [10])


def test_lines_say_when_where_and_how(project: Path) -> None:
    """Commit, date, cores and options; other options are not compared."""
    kept(project, "1")
    commit(project)
    (project / "numbers").write_text("5")
    assert run_all.main(["one", "--", "--full"]) == 0
    *_, last = history.entries((project / "benchmarks/history/one.jsonl").read_text())
    assert (last.args, last.cores > 0, last.date[:2]) == ("--full", True, "20")
    assert last.commit


@pytest.mark.parametrize("more", [True, False])
def test_worse_is_lower_where_more_is_better(more: bool) -> None:
    """And within 10 % neither way."""
    names = ["a"] if more else []
    low, mid, high = (history.Entry({"a": v}, more=names) for v in (1, 1.09, 1.5))
    assert not list(low.worse_than(mid)) + list(mid.worse_than(low))
    assert bool(list(high.worse_than(low))) is not more
    assert bool(list(low.worse_than(high))) is more


def test_worse_is_beyond_three_spreads_where_these_are_wide() -> None:
    """Those of either line count: a ratio that wobbles by 15 % may be 45 % worse."""
    narrow, wide = history.Entry({"a": 1}, {"a": 0.02}), history.Entry({"a": 1.4})
    assert list(wide.worse_than(narrow))
    wide.spread["a"] = 0.15
    assert not list(wide.worse_than(narrow))
    assert list(
        history.Entry({"a": 1.5}).worse_than(history.Entry({"a": 1}, wide.spread))
    )


def test_repeats_are_kept_as_median_and_spread() -> None:
    """Sizes too, which no later run is held against."""
    assert history.record("two", {"a": [1, 2, 4]}, sizes={"s": 7}, least={"s": 7}) == 0
    made = history.measured("two")
    assert made is not None
    assert (made.ratios, made.spread, made.sizes) == ({"a": 2}, {"a": 1.5}, {"s": 7})
    worse = history.Entry({"a": 2}, sizes={"s": 70})
    assert not list(worse.worse_than(made))


def test_an_unknown_name_is_a_user_error(capsys: pytest.CaptureFixture[str]) -> None:
    """And the names that there are stand beside it."""
    assert run_all.main(["nothing"]) == 2
    assert "nothing: one" in capsys.readouterr().out


def test_every_script_ends_with_its_record() -> None:
    """So that `make bench` remembers each of them."""
    scripts = (Path(__file__).parents[1] / "benchmarks").glob("bench_*.py")
    assert not [p.name for p in scripts if "record" not in p.read_text("utf-8")]
