"""Sentences on privacy in the report, from the data alone and for any reader."""

from __future__ import annotations

import math
import shlex

from curvote.chain.system import MessageDescription
from curvote.messages.amplification import OUTSIDER
from curvote.report.data import PageData


def has_local_messages(data: PageData) -> bool:
    """Return whether somebody sends a message about one record."""
    return any(
        not message.per_table for message in _deployed_messages(data)
    ) or not _deployed_messages(data)


def has_central_releases(data: PageData) -> bool:
    """Return whether somebody releases an object about a whole table."""
    return any(message.per_table for message in _deployed_messages(data))


def _deployed_messages(data: PageData) -> list[MessageDescription]:
    return [message for message in data.releases if not message.study_only]


def party_name(data: PageData) -> str:
    """Return the name of senders: "client", or "client or server"."""
    return (
        " or ".join(
            dict.fromkeys(message.party for message in _deployed_messages(data))
        )
        or "client"
    )


def releases_heading(data: PageData) -> str:
    """Return the heading of the section on released messages."""
    return f"What left each {party_name(data)}"


def release_frequency(data: PageData) -> str:
    """Return sentences on how often each sender releases something."""
    sentences = [
        "Each client has one role and sends its message once."
    ] * has_local_messages(data)
    if has_central_releases(data):
        sentences.append(
            f"Each {_table_holder(data)} releases one object about all of its records,"
            " once;"
            " it answers every query, and serves every target."
        )
    return " ".join(sentences)


def _table_holder(data: PageData) -> str:
    return next(
        message.party for message in _deployed_messages(data) if message.per_table
    )


def protection_statement(data: PageData) -> str:
    """Return a statement on whether this run's noise protects anybody."""
    who = party_name(data)
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


def explain_epsilon(data: PageData, level: float) -> str:
    """Explain epsilon, at a level, to a reader who has never met it."""
    sentences = [_explain_local(data, level)] if has_local_messages(data) else []
    sentences += [_explain_central(data, level)] if has_central_releases(data) else []
    return " ".join([*sentences, "Smaller is more private."])


def _explain_local(data: PageData, level: float) -> str:
    return (
        "Epsilon limits what a release can give away: whatever the client's"
        f" {data.record} is, every possible message is at most e^epsilon times as"
        f" likely as under any other {data.record} (at epsilon {level:g}:"
        f" {math.exp(level):.3g} times)."
    )


def _explain_central(data: PageData, level: float) -> str:
    holder = _table_holder(data)
    return (
        f"The model is central privacy for each {holder}: a release is about all n"
        f" {data.record}s of its {holder}, and every one of them is hidden at (epsilon,"
        " delta) from whoever sees the release, the target included. If any one"
        f" {data.record} were another, whatever is released would be at most e^epsilon"
        f" times as likely (at epsilon {level:g}: {math.exp(level):.3g} times), but for"
        f" a probability of delta. The {holder} itself is trusted with its own"
        f" {data.record}s; somebody whose {data.record} two of them hold loses the sum."
    )


def losses_caption(data: PageData) -> str:
    """Return the caption of the table of losses."""
    if has_central_releases(data) and not has_local_messages(data):
        return f"Claimed and exact loss of one release, for each {data.record} in it."
    return "Claimed and exact loss of one message of one client."


def charged_cap(data: PageData) -> str:
    """Return whose cap the ledger counts against, in words."""
    if has_central_releases(data) and not has_local_messages(data):
        return f"the cap of every {data.record} that a release is about"
    return "every client's cap"


def outsider_statement(data: PageData) -> str:
    """Return a statement on what outsiders learn at most, "" if unknown."""
    if not data.outside:
        return ""
    listed = "; ".join(
        f"{name}: epsilon {guarantee.epsilon:.3g} at delta {guarantee.delta:.1g}, among"
        f" {guarantee.crowd:,}"
        for name, guarantee in data.outside
    )
    return (
        "The server sees messages come in, and against it every client has the epsilon"
        f" above. For {OUTSIDER}, one client's {data.record} is hidden better, as its"
        f" message is one of many (Feldman, McMillan & Talwar 2021). {listed}."
    )


def audit_statement(data: PageData) -> str:
    """Return a statement on the audit of messages, or how to make one."""
    command = f"curvote audit --pipeline {shlex.quote(data.pipeline)}"
    if not data.audited:
        return f"{command} also tries to break these claims from samples; not done yet."
    return f"Tried to break from samples as well ({command}): {data.audited}."
