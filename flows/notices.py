"""Telling somebody that a run failed, waits, was missed, or succeeds again.

Whom, says `runtime.notify` of pipelines.yaml (a command of one's own) and the variable
CURVOTE_NOTIFY_URLS (addresses as Apprise knows them, parted by spaces). A notice says
which pipeline, what happened and to which run: no value, no client, no word of an
error.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

from curvote.errors import UserError
from curvote.flows.output import lines
from curvote.run.config.file import PipelinesFile
from curvote.run.config.runtime import Event, Notify
from curvote.run.project import Project

URLS = "CURVOTE_NOTIFY_URLS"
_SECONDS = 30.0
# What Apprise shows of each: its own word for how bad it is, and a title.
_SHOWN = {
    "failed": ("failure", "{pipeline} failed"),
    "blocked": ("info", "{pipeline} is blocked: it waits for envelopes"),
    "missed": ("warning", "{pipeline} missed a run"),
    "recovered": ("success", "{pipeline} has recovered"),
}


def notify(project: Project, event: Event, pipeline: str, **facts: str | int) -> None:
    """Tell of an event, if the project's file asks for it; never raises.

    The command is given one JSON object, ``{event, pipeline, time, ...facts}``, on
    standard input. What goes wrong is one line of warning.
    """
    wanted = _wanted(project)
    if event not in wanted.on:
        return
    now = datetime.now(UTC).isoformat(timespec="seconds")
    notice = {"event": event, "pipeline": pipeline, "time": now, **facts}
    with lines.about(pipeline=pipeline):
        if wanted.command:
            _command(wanted.command, notice)
        if urls := os.environ.get(URLS, "").split():
            _apprise(urls, notice)


def notify_again(
    project: Project, event: Event, pipeline: str, before: int, now: int, **facts: str
) -> None:
    """Tell of what happens firing after firing: the first time, then ever more rarely.

    ``now`` times it has happened in a row, ``before`` of them before this firing. It is
    told whenever that reaches another power of two, with the count.
    """
    if now.bit_length() > before.bit_length():
        notify(project, event, pipeline, count=now, **facts)


@contextlib.contextmanager
def telling(project: Project, pipeline: str) -> Iterator[None]:
    """Tell of a run that fails meanwhile; the error goes on."""
    try:
        yield
    except Exception:
        notify(project, "failed", pipeline)
        raise


def _wanted(project: Project) -> Notify:
    """Return what the file says now; one that cannot be read asks for the usual."""
    with contextlib.suppress(UserError, OSError):
        return PipelinesFile(project).runtime().notify
    return Notify()


def _command(command: tuple[str, ...], notice: dict[str, Any]) -> None:
    try:
        done = subprocess.run(
            command,
            input=f"{json.dumps(notice)}\n".encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        _warn(f"{command[0]} took over {_SECONDS:g} s")
    except OSError as error:
        _warn(f"{command[0]}: {error.strerror}")
    else:
        if done.returncode:
            _warn(f"{command[0]} ended with exit code {done.returncode}")


def _apprise(urls: list[str], notice: dict[str, Any]) -> None:
    """Send to every address; what they are stands nowhere but in the environment."""
    from apprise import Apprise

    logging.getLogger("apprise").setLevel(logging.CRITICAL)
    kind, form = _SHOWN[notice["event"]]
    title = f"curvote: {form.format(pipeline=notice['pipeline'])}"
    body = "\n".join(f"{name}: {value}" for name, value in notice.items())
    senders = Apprise()
    if not all(map(senders.add, urls)):
        _warn(f"an address in {URLS} is none that Apprise knows")
    try:
        told = partial(senders.notify, title=title, body=body, notify_type=kind)
        sent = not len(senders) or told()
    except Exception as error:  # noqa: BLE001 - theirs; a notice must not fail a run
        _warn(type(error).__name__)
    else:
        if not sent:
            _warn(f"not every address in {URLS} took it")


def _warn(why: str) -> None:
    lines.say(f"the notice could not be sent: {why}", "warning")


def tell_missed(
    project: Project, say: Callable[..., None], pipeline: str, fact: dict[str, Any]
) -> None:
    """Say which firings were missed, and tell whoever wants to know.

    ``fact`` holds ``count``; ``first`` and ``last`` where nothing could run; and
    ``made_up`` where one run makes up for them.
    """
    count = fact["count"]
    how_many = f"{count} firings" if count > 1 else "a firing"
    if "first" not in fact:
        say(f"passed over {how_many}: a run was under way", pipeline=pipeline)
        return
    last = datetime.fromisoformat(fact["last"]).strftime("%Y-%m-%d %H:%M:%S UTC")
    then = "made up for now" if fact["made_up"] else "not made up for"
    text = f"missed {how_many}, the latest at {last}; {then}"
    say(text, "warning", pipeline=pipeline)
    notify(project, "missed", pipeline, count=count, last=fact["last"])
