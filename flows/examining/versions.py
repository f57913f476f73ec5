"""Doctor's checks of versions, stored runs and releases.

pip resolves some sets of packages that break only when something runs: newer versions
of parts of Prefect and scikit-fda. What curvote requires names them.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata

from curvote.flows.examining.finding import Finding, shorten_list
from curvote.run.project import Project

VERSION_REMEDY = "install the tested set again: `pip install -c constraints.txt -e .`"


def check_versions(_project: Project) -> Iterator[Finding]:
    """Check the installed version of every required package."""
    try:
        named = metadata.requires("curvote") or []
    except metadata.PackageNotFoundError:
        return  # run from its folder, never installed: nobody said what it needs
    wrong = [line for text in named if (line := _requirement_problem(text))]
    if wrong:
        yield Finding("versions", "failed", shorten_list(wrong, 5), VERSION_REMEDY)
    else:
        yield Finding("versions", "ok", f"{len(named)} packages as required")


def _requirement_problem(text: str) -> str | None:
    """Return what is wrong with one requirement; an extra may be absent."""
    from packaging.requirements import Requirement

    needed = Requirement(text)
    extra = "extra" in str(needed.marker or "")
    if needed.marker and not extra and not needed.marker.evaluate():
        return None
    try:
        installed = metadata.version(needed.name)
    except metadata.PackageNotFoundError:
        return None if extra else f"{needed.name} is not installed"
    if needed.specifier.contains(installed, prereleases=True):
        return None
    return f"{needed.name} {installed} is installed, {needed.specifier} is needed"
