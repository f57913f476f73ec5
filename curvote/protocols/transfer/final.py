"""Final model of a pipeline: the main method's classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curvote.chain.view import View
from curvote.protocols.finals import read_encoding, record_columns
from curvote.protocols.transfer import combining

if TYPE_CHECKING:
    from curvote.protocols.transfer.kept import TransferClassifier


def final_model(view: View) -> TransferClassifier:
    """Return the target's classifier of the first repetition."""
    from curvote.protocols.transfer.kept import TransferClassifier  # scikit-learn

    params = {name: view.setting(name) for name in combining.PARAMS}
    task = combining.joint_task(view.metadata("project"), params)
    server_views = (view.at(server=name) for name in view.setting("names"))
    releases = combining.read_releases(
        task,
        (server_view.columns("privatize", "releases") for server_view in server_views),
    )
    model = combining.combine_method(task, releases, view.setting("methods")[0], params)
    encoding = read_encoding(view).to_json()
    return TransferClassifier(record_columns(view), encoding, model.to_json())
