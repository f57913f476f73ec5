"""What Sphinx calls: pages made from the code, and names that it does not find."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils import nodes

from making import api, commands
from tests.public_names import public_names

MADE = Path(__file__).parents[1] / "reference"


def setup(app: Any) -> dict[str, bool]:
    """Make the pages before Sphinx looks for pages; answer for names that have none."""
    app.connect("config-inited", lambda *_: write())
    app.connect("autodoc-skip-member", lambda *given: not ours(given[3]) or None)
    app.connect("missing-reference", found)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write() -> None:
    """Write the pages that changed, and remove those of names that are gone."""
    MADE.mkdir(exist_ok=True)
    made = dict([*api.pages(), *commands.pages()])
    for old in MADE.iterdir():
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        page = MADE / name
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def ours(member: Any) -> bool:
    """Say whether curvote wrote it: what scikit-learn adds is told there."""
    function = inspect.unwrap(getattr(member, "fget", member))
    return str(getattr(function, "__module__", "")).startswith("curvote")


def aliases() -> dict[str, str]:
    """Return what types of parameters link to: public names by their last word.

    Of two with one last word (`Task`) it means the one that is found first.
    """
    return {full.rpartition(".")[2]: full for full in reversed([*public_names()])}


def found(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Link a public name that stands without its package; leave another as text.

    A name that nothing in curvote has stays unresolved: a warning, so an error.
    """
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    first, dot, rest = target.partition(".")
    if package := aliases().get(first):
        full = f"{package}{dot}{rest}"
        python, page = env.domains.python_domain, node["refdoc"]
        return python.resolve_xref(env, page, app.builder, "obj", full, node, content)
    if _there(target, node.get("py:module"), node.get("py:class")):
        return nodes.literal("", content.astext())
    return None


def _there(target: str, module: str | None, inside: str | None) -> bool:
    places = [target, f"{module}.{target}", f"{module}.{inside}.{target}"]
    return any(_imported(place) for place in places)


def _imported(path: str) -> bool:
    """Say whether the words name a thing of curvote: a module, or what one holds."""
    if not path.startswith("curvote."):
        return False
    try:
        import_module(path)
    except ImportError:
        return _held(path)
    return True


def _held(path: str) -> bool:
    outer, _, name = path.rpartition(".")
    if not outer:
        return False
    try:
        return inspect.getattr_static(import_module(outer), name, None) is not None
    except ImportError:
        return _imported(outer)
