"""The model to keep: what the main method was scored with."""

from __future__ import annotations

from typing import Any

from curvote.chain.view import View
from curvote.protocols.transfer import combining


def final(view: View) -> Any:
    """Return the target's classifier of the first repetition."""
    params = {name: view.setting(name) for name in combining.PARAMS}
    public = view.facts("project")
    asked = combining.task(public, params)
    every = (view.at(server=name) for name in view.setting("names"))
    sent = combining.releases(
        asked, (one.columns("privatize", "releases") for one in every)
    )
    return combining.model(asked, sent, view.setting("methods")[0], params)
