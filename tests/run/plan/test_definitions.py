"""Definitions: what a function reaches, what of it counts, and notes of parsed code."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from curvote.pipeline.plan import definitions
from curvote.pipeline.plan.definitions import Module, Notes, of_code

Package = Callable[..., set[str]]
MODULES = ["curvote.wire.envelope"]  # six files


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    """Return what says which definitions ``curvote.a:f`` reaches in a package of ours.

    Its modules are texts by name: "b" is b.py, "p/__init__" a package.
    """
    root = tmp_path / "curvote"
    monkeypatch.setattr(definitions, "PACKAGE", root)
    monkeypatch.setattr(definitions, "NOTES", Notes())

    def reached(**modules: str) -> set[str]:
        for name, text in {"__init__": "", **modules}.items():
            path = root.joinpath(*name.split("/")).with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        code = of_code(["curvote.a:f"])
        return {f"{place[8:]}.{name}" for place, own in code.items() for name in own}

    return reached


LAZY = '__getattr__ = exports(__name__, {"g": "b"})'


@pytest.mark.parametrize(
    ("text", "reached"),
    [
        ("from curvote.b import g\ndef f(): g()", {"b.g", "b.h"}),
        ("from curvote import b\ndef f(): b.g()", {"b.g", "b.h"}),
        ("import curvote.b as own\ndef f(): own.h", {"b.h"}),
        ("import curvote.b\ndef f(): curvote.b.h", {"b.h"}),
        ("def f():\n    from curvote.b import h\n    h()", {"b.h"}),
        (
            "def f():\n  try: from curvote.b import h\n  except E: h = 0\n  h()",
            {"b.h"},
        ),
        (
            "try: from curvote.b import h\nexcept E: h = 0\ndef f(): h()",
            {"a.", "a.h", "b.h"},
        ),
        ("from curvote.p import g\ndef f(): g()", {"b.g", "b.h"}),
        ("from curvote import p\ndef f(): p.g()", {"b.g", "b.h"}),
        ("from curvote.again import h\ndef f(): h()", {"b.h"}),
        # A module as a value, or named by a text: all of it.
        ("from curvote import d\ndef f(): return [d]", {"d.X", "d.Y", "b.h"}),
        ("def f(): import_module('curvote.d')", {"d.X", "d.Y", "b.h"}),
        ("def f(): return 'curvote.d:Y'", {"d.Y"}),
        # A class: methods, bases, decorators, what its fields look at.
        (
            "from curvote.c import Own\ndef f(): Own",
            {"c.Own", "c.Own.method", "c.Base", "c.Base.method", "b.h"},
        ),
        ("from curvote.c import Model\ndef f(): Model", {"c.Model", "d.X", "b.h"}),
        ("from curvote.c import Plain\ndef f(): Plain", {"c.Plain"}),
        ("def g(): 0\nclass f:\n  g = staticmethod(g)", {"a.g"}),
        ("X = Y = 1\ndef f(): X", {"a.X"}),
        ("def f(g=lambda h: h): return [X for X in 'X']\ndef g(): 0\nX = 1", set()),
        ("X, Y = 1, 2\ndef f():\n    global X\n    X = X + 1", {"a.X"}),
        # Names of its own hide the module's, but where a loop begins.
        ("from curvote.b import h\ndef f(h): return h()", set()),
        ("def f(): return [X for X in X]\nX = 1", {"a.X"}),
        # What nobody looks at when it runs.
        ("from curvote.b import h\ndef f(x: h) -> h: x: h = 1", set()),
        ("if TYPE_CHECKING:\n    from curvote.b import h\ndef f(): h", set()),
        # What runs at import, in each module that is imported.
        ("from curvote.e import g\ndef f(): 0", {"e.", "e.g", "b.h"}),
        ("from curvote.e import g\ndef f(): g()", {"e.", "e.g", "b.h"}),
        (
            "from curvote.e import other\ndef f(): other()",
            {"e.", "e.g", "e.other", "b.h"},
        ),
        # A registry's tables only name what a setting chooses; its functions count.
        ("from curvote.registry import NAMES\ndef f(): NAMES", set()),
        ("from curvote.registry import g\ndef f(): g()", {"registry.g", "b.h"}),
    ],
)
def test_what_a_function_reaches(
    package: Package, text: str, reached: set[str]
) -> None:
    """Beside itself: through imports, lazy exports, values, texts and classes."""
    found = package(
        a=text,
        b="def g(): h()\ndef h(): 0\ndef other(): 0",
        c="from dataclasses import dataclass\nfrom curvote.b import h\n"
        "from curvote.d import X\n"
        "class Base:\n    def method(self): h()\n"
        "class Own(Base):\n    def method(self): 0\n"
        "class Model(Other):\n    field: 'list[X]'\n"
        "@dataclass\nclass Plain:\n    field: X\n",
        d="from curvote.b import h\ndef X(): h()\nY = 1",
        e="from functools import singledispatch\nfrom curvote.b import h\n"
        "@singledispatch\ndef g(x): 0\n@g.register\ndef _(x: int): h()\n"
        "def other(): 0\n",
        again="from curvote.b import h",
        registry="from curvote.b import h\nNAMES = {'h': 'curvote.b:h'}\n"
        "def g(): return NAMES, h()",
        **{"p/__init__": LAZY, "p/b": "from curvote.b import g"},
    )
    assert found == reached | {"a.f"}


SAME = [
    ("def f(): return 1", "# A remark.\ndef f():\n    'Words.'\n    return (1)"),
    ("def f(x): y: str = x", "def f(x: int) -> None: y: int = x"),
    ("def f(): 0", "from numpy import exp\nX = 1\nclass C: pass\ndef f(): 0"),
    (
        "class f:\n  def g(self): 0\n  def h(self): 0",
        "class f:\n  'Words.'\n  def h(self): 0\n\n  def g(self): 0",
    ),
]
OTHER = [
    ("def f(): return 1", "def f(): return 2"),
    ("def f(x=1): 0", "def f(x=2): 0"),
    ("from math import exp\ndef f(): exp", "from numpy import exp\ndef f(): exp"),
    ("def f(): 0", "@cache\ndef f(): 0"),
    ("def f(): 0", "def f(): 0\ng.register(f)"),
    ("class f:\n  x: int", "class f:\n  x: str"),
    ("class f(A): 0", "class f(B): 0"),
    ("f = 1", "f = 1\nf += 1"),
    ("@g.register\ndef f(x: int): 0", "@g.register\ndef f(x: str): 0"),
]


@pytest.mark.parametrize(
    ("old", "new", "same"), [(*p, True) for p in SAME] + [(*p, False) for p in OTHER]
)
def test_what_counts_of_a_definition(
    package: Package, old: str, new: str, same: bool
) -> None:
    """Not its layout, words and annotations; but what its names mean."""
    package(a=old)
    before = of_code(["curvote.a:f"])
    package(a=new)
    assert (of_code(["curvote.a:f"]) == before) is same


def test_a_change_of_a_method_is_that_of_no_other(package: Package) -> None:
    """A reason names the method, though the class counts whole."""
    text = "class f:\n    x = 1\n    def g(self): return 1\n    def h(self): return 1"
    package(a=text)
    before = of_code(["curvote.a:f"])["curvote.a"]
    package(a=text.replace("self): return 1", "self): return exp(1)", 1))
    now = of_code(["curvote.a:f"])["curvote.a"]
    assert set(now) == {"f", "f.g", "f.h"}
    assert {name for name in now if now[name] != before[name]} == {"f.g"}


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notes]:
    """Return notes in a folder of their own, with nothing parsed before."""
    made = Notes()
    made.open(tmp_path / "code.json")
    monkeypatch.setattr(definitions, "NOTES", made)
    forget(monkeypatch)
    yield made
    forget(monkeypatch)


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what this process has parsed."""
    definitions._module_in.cache_clear()
    monkeypatch.setattr(definitions, "_CLOSURES", {})


def again(notes: Notes) -> Notes:
    """Return what another process would read."""
    read = Notes()
    assert notes.file
    read.open(notes.file)
    return read


def test_notes_give_the_digests_that_parsing_gives(
    notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no file is parsed a second time, by whatever process."""
    parsed = of_code(MODULES)
    monkeypatch.setattr(definitions, "NOTES", again(notes))
    forget(monkeypatch)
    monkeypatch.setattr(definitions.ast, "dump", pytest.fail)
    assert of_code(MODULES) == parsed


def test_a_changed_file_is_parsed_anew(notes: Notes, tmp_path: Path) -> None:
    """Also one of equal size and date: another file has another inode, or change."""
    path = tmp_path / "one.py"
    path.write_text("x = 1\n")
    module = Module({"x": ({"": "digest"}, ["curvote.base.errors"])})
    notes.add(path, module)
    assert notes.find(path) == module
    before = path.stat()
    other = tmp_path / "two.py"
    other.write_text("x = 2\n")
    other.replace(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert notes.find(path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"by": 1, "files": {}}', '{"by": 1}'])
def test_notes_that_cannot_be_used_are_passed_over(notes: Notes, text: str) -> None:
    """Of another Python, another way of parsing, or damaged."""
    of_code(MODULES)
    assert notes.file
    assert again(notes).modules
    notes.file.write_text(text)
    assert again(notes).modules == {}


def test_without_a_folder_nothing_is_written(
    notes: Notes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan in a fresh project leaves no trace."""
    notes.open(tmp_path / "absent" / "code.json")
    forget(monkeypatch)
    assert of_code(MODULES)
    assert not (tmp_path / "absent").exists()


def test_notes_hold_names_and_digests_only(notes: Notes) -> None:
    """No code and no data stand there."""
    of_code(MODULES)
    assert notes.file
    files = json.loads(notes.file.read_text())["files"]
    assert files
    for _, made, *_ in files.values():
        digests = [digest for own, _ in made.values() for digest in own.values()]
        assert all(len(digest) == definitions.DIGITS for digest in digests)
