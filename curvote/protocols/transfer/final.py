"""The model to keep: what the main method was scored with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curvote.chain.view import View
from curvote.protocols.finals import columns_of, encoding_of
from curvote.protocols.transfer import combining

if TYPE_CHECKING:
    from curvote.protocols.transfer.kept import TransferClassifier


def final(view: View) -> TransferClassifier:
    """Return the target's classifier of the first repetition."""
    from curvote.protocols.transfer.kept import TransferClassifier  # scikit-learn

    params = {name: view.setting(name) for name in combining.PARAMS}
    asked = combining.task(view.facts("project"), params)
    every = (view.at(server=name) for name in view.setting("names"))
    sent = combining.releases(
        asked, (one.columns("privatize", "releases") for one in every)
    )
    made = combining.model(asked, sent, view.setting("methods")[0], params)
    encoding = encoding_of(view).to_json()
    return TransferClassifier(columns_of(view), encoding, made.to_json())
