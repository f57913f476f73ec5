"""What curvote offers by name, and the sections of its docstrings."""

import inspect
import re
from importlib import import_module
from typing import Any

PACKAGES = ("", "labels", "labels.regression", "mechanisms", "estimators")
PACKAGES += ("theory", "transfer", "utility")
_RULE = re.compile(r"^(\w+)\n-{3,}$", re.MULTILINE)


def public_names() -> dict[str, Any]:
    """Return all public objects by the first name they have, each once."""
    found: dict[int, tuple[str, Any]] = {}
    for inside in PACKAGES:
        package = import_module(".".join(filter(None, ("curvote", inside))))
        for name in package.__all__:
            if name == "__version__":  # a text
                continue
            thing = getattr(package, name)
            found.setdefault(id(thing), (f"{package.__name__}.{name}", thing))
    return dict(found.values())


def sections(thing: Any) -> dict[str, str]:
    """Return the numpydoc sections of a docstring: what stands under each headline."""
    parts = _RULE.split(inspect.getdoc(thing) or "")
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def described(section: str) -> set[str]:
    """Return the names that a section of parameters or attributes has entries for."""
    heads = [line for line in section.splitlines() if re.match(r"[\w*]", line)]
    names = [head.split(":")[0] for head in heads]
    return {name.strip(" *") for each in names for name in each.split(",")}
