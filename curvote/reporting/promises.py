"""What the report says about privacy, from the data alone and for any reader."""

from __future__ import annotations

import math
import shlex

from curvote.chain.sent import Sent
from curvote.protocols.outside import WHO
from curvote.reporting.data import PageData


def local(data: PageData) -> bool:
    """Say whether somebody sends a message about one record, and trusts nobody."""
    return any(not one.whole for one in _real(data)) or not _real(data)


def central(data: PageData) -> bool:
    """Say whether somebody sends a release about all records of a table."""
    return any(one.whole for one in _real(data))


def _real(data: PageData) -> list[Sent]:
    return [one for one in data.releases if not one.study_only]


def party(data: PageData) -> str:
    """Return the word for who sends something: "client", or "client or server"."""
    return " or ".join(dict.fromkeys(one.party for one in _real(data))) or "client"


def heading(data: PageData) -> str:
    """Return the heading of what left whom."""
    return f"What left each {party(data)}"


def once(data: PageData) -> str:
    """Say how often each of them sends something."""
    said = ["Each client has one role and sends its message once."] * local(data)
    if central(data):
        said.append(
            f"Each {_holder(data)} releases one object about all of its records, once;"
            " it answers every query, and serves every target."
        )
    return " ".join(said)


def _holder(data: PageData) -> str:
    return next(one.party for one in _real(data) if one.whole)


def purpose(data: PageData) -> str:
    """Say whether anybody was protected by the noise of this run."""
    who = party(data)
    if data.private:
        return (
            "This is a real release. The noise came from the operating system of each"
            f" {who} and was never stored; only the noised values below left a {who}."
        )
    return (
        f"This is a study: the {who}s are simulated from a data set, and the noise"
        f" comes from the seed {data.seed}. Whoever knows the seed can remove the"
        f" noise, so this run protects nobody. It shows what would leave each {who}"
        " in a real release, and how good the classifier would be."
    )


def meaning_of_epsilon(data: PageData, level: float) -> str:
    """Explain epsilon, ``level`` for one, to a reader who has never met it."""
    told = [_local(data, level)] if local(data) else []
    told += [_central(data, level)] if central(data) else []
    return " ".join([*told, "Smaller is more private."])


def _local(data: PageData, level: float) -> str:
    return (
        "Epsilon limits what a release can give away: whatever the client's"
        f" {data.record} is, every possible message is at most e^epsilon times as"
        f" likely as under any other {data.record} (at epsilon {level:g}:"
        f" {math.exp(level):.3g} times)."
    )


def _central(data: PageData, level: float) -> str:
    holder = _holder(data)
    return (
        f"The model is central privacy for each {holder}: a release is about all n"
        f" {data.record}s of its {holder}, and every one of them is hidden at (epsilon,"
        " delta) from whoever sees the release, the target included. If any one"
        f" {data.record} were another, whatever is released would be at most e^epsilon"
        f" times as likely (at epsilon {level:g}: {math.exp(level):.3g} times), but for"
        f" a probability of delta. The {holder} itself is trusted with its own"
        f" {data.record}s; somebody whose {data.record} two of them hold loses the sum."
    )


def losing(data: PageData) -> str:
    """Say what the table of losses holds."""
    if central(data) and not local(data):
        return f"Claimed and exact loss of one release, for each {data.record} in it."
    return "Claimed and exact loss of one message of one client."


def charged(data: PageData) -> str:
    """Say whose cap the ledger counts against."""
    if central(data) and not local(data):
        return f"the cap of every {data.record} that a release is about"
    return "every client's cap"


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
