"""What the report says about privacy, from the data alone and for any reader."""

from __future__ import annotations

import math
import shlex

from curvote.protocols.outside import WHO
from curvote.reporting.data import PageData
from curvote.reporting.words import reference_epsilon


def purpose(data: PageData) -> str:
    """Say whether anybody was protected by the noise of this run."""
    if data.private:
        return (
            "This is a real release. The noise came from the operating system of each"
            " client and was never stored; only the noised values below left a client."
        )
    return (
        "This is a study: the clients are simulated from a data set, and the noise"
        f" comes from the seed {data.seed}. Whoever knows the seed can remove the"
        " noise, so this run protects nobody. It shows what would leave each client"
        " in a real release, and how good the classifier would be."
    )


def meaning_of_epsilon(data: PageData) -> str:
    """Explain epsilon to a reader who has never met it."""
    level = reference_epsilon(data)
    return (
        "Epsilon limits what a release can give away: whatever the client's"
        f" {data.record} is, every possible message is at most e^epsilon times as"
        f" likely as under any other {data.record} (at epsilon {level:g}:"
        f" {math.exp(level):.3g} times). Smaller is more private."
    )


def seen_from_outside(data: PageData) -> str:
    """Say what an outsider learns at most who trusts the shuffler; else nothing."""
    if not data.outside:
        return ""
    each = "; ".join(
        f"{name}: epsilon {told.epsilon:.3g} at delta {told.delta:.1g}, among"
        f" {told.crowd:,}"
        for name, told in data.outside
    )
    return (
        "The server sees messages come in, and against it every client has the epsilon"
        f" above. For {WHO}, one client's {data.record} is hidden better, as its"
        f" message is one of many (Feldman, McMillan & Talwar 2021). {each}."
    )


def audited(data: PageData) -> str:
    """Say what an audit of the messages found, or how to make one."""
    command = f"curvote audit --pipeline {shlex.quote(data.pipeline)}"
    if not data.audited:
        return f"{command} also tries to break these claims from samples; not done yet."
    return f"Tried to break from samples as well ({command}): {data.audited}."
