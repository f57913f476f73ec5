"""Stage agree: what each deployment of a mechanism does to every record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from curvote.chain.stage import Rows, StageContext
from curvote.entropy import SeededEntropy
from curvote.protocols.utility import deployed
from curvote.protocols.utility.given import sent_settings
from curvote.protocols.utility.known import read_profile
from curvote.protocols.utility.measured import CONFIDENCE
from curvote.protocols.utility.methods import FEATURES
from curvote.utility.deployments.deployment import Deployment, ReadMode
from curvote.utility.deployments.retrain import Refit
from curvote.utility.deployments.scan import list_deployments, measure
from curvote.utility.engines.base import Draws
from curvote.utility.setting import Setting


def one(context: StageContext) -> Rows:
    """Return the table ``agreed``: the deployments of one mechanism and epsilon."""
    settings = sent_settings(context)
    results = [
        result
        for name_sent in settings
        for result in _deployment_results(context, name_sent, settings[name_sent])
    ]
    return {"agreed": deployed.deployment_table(results)}


def _deployment_results(
    context: StageContext, name_sent: str, setting: Setting
) -> Iterator[deployed.DeploymentResult]:
    """Yield deployment, description and measurement of one way to send."""
    profile = read_profile(context, name_sent, setting)
    for deployment in _mechanism_deployments(context, name_sent, setting):
        purpose = f"{name_sent} {deployment.split} {deployment.read}"
        seed = int(context.generator(purpose).integers(1 << 31))
        draws = Draws(
            context.params["deployments.draws"], CONFIDENCE, SeededEntropy(seed)
        )
        measurement = measure(setting, profile, deployment, draws, Refit(seed=seed))
        # The shares of features, which a projection does not send, are none.
        stored = replace(deployment, split=None) if deployment.project else deployment
        yield stored, deployment.describe(setting.names), measurement


def _mechanism_deployments(
    context: StageContext, name_sent: str, setting: Setting
) -> list[Deployment]:
    """Return the deployments of the stage's mechanism, without floors.

    Several coordinates are sent jointly, and read raw; training data have none.
    """
    params, name = context.params, context.params["mechanism"]
    candidates = list_deployments(
        setting,
        [params["epsilon"]],
        [name],
        reads=_available_reads(params["deployments.reads"], setting),
        params=params["deployments.params"].get(name),
    )
    matching = [deployment for deployment in candidates if deployment.mechanism == name]
    if name_sent == FEATURES:
        return matching
    alone = len(setting.sensitive) == 1
    fit = (deployment for deployment in matching if deployment.split is None or alone)
    return [replace(deployment, project=name_sent) for deployment in fit]


def _available_reads(reads: Sequence[ReadMode], setting: Setting) -> list[ReadMode]:
    """Return the ways of reading for which the setting has the data."""
    needed = {"decode": setting.public, "retrain": setting.train}
    return [read for read in reads if needed.get(read, ()) is not None]
