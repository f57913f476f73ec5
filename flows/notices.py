"""Notices to people: a run failed, waits, was missed, finds an alarm, or is well.

Whom, says `runtime.notify` of pipelines.yaml (a command of one's own) and the variable
CURVOTE_NOTIFY_URLS (addresses as Apprise knows them, parted by spaces). A notice says
which pipeline, what happened and to which run: no value, no client, no word of an
error.
"""

import contextlib
import json
import logging
import os
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

from curvote.base.errors import UserError
from curvote.flows import lines
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.schema import Event, Notify
from curvote.pipeline.store.records import RunRecord, load_records

URLS_VARIABLE = "CURVOTE_NOTIFY_URLS"
_COMMAND_SECONDS = 30.0
# What Apprise shows of each: its own word for how bad it is, and a title.
_EVENT_TITLES = {
    "failed": ("failure", "{pipeline} failed"),
    "blocked": ("info", "{pipeline} is blocked: it waits for envelopes"),
    "missed": ("warning", "{pipeline} missed a run"),
    "alarm": ("warning", "{pipeline} gives an alarm"),
    "recovered": ("success", "{pipeline} has recovered"),
}


def send_notice(
    project: Project, event: Event, pipeline: str, **facts: str | int
) -> None:
    """Send a notice of an event if the project's file asks for it.

    The command is given one JSON object, ``{event, pipeline, time, ...facts}``, on
    standard input. What goes wrong is one line of warning.
    """
    wanted = Notify()  # unless the file, as it is now, says otherwise
    with contextlib.suppress(UserError, OSError):
        wanted = PipelinesFile(project).runtime().notify
    if event not in wanted.on:
        return
    now = datetime.now(UTC).isoformat(timespec="seconds")
    notice = {"event": event, "pipeline": pipeline, "time": now, **facts}
    with lines.shared_facts(pipeline=pipeline):
        if wanted.command:
            try:
                done = subprocess.run(
                    wanted.command,
                    input=f"{json.dumps(notice)}\n".encode(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=_COMMAND_SECONDS,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                _warn_not_sent(f"{wanted.command[0]} took over {_COMMAND_SECONDS:g} s")
            except OSError as error:
                _warn_not_sent(f"{wanted.command[0]}: {error.strerror}")
            else:
                if done.returncode:
                    _warn_not_sent(
                        f"{wanted.command[0]} ended with exit code {done.returncode}"
                    )
        if urls := os.environ.get(URLS_VARIABLE, "").split():
            _send_apprise(urls, notice)


def send_repeated_notice(
    project: Project, event: Event, pipeline: str, before: int, now: int, **facts: str
) -> None:
    """Send a notice of a repeated event when its count reaches a power of two.

    ``now`` times it has happened in a row, ``before`` of them before this firing. It is
    told whenever that reaches another power of two, with the count.
    """
    if now.bit_length() > before.bit_length():
        send_notice(project, event, pipeline, count=now, **facts)


@contextlib.contextmanager
def failures_noticed(project: Project, pipeline: str) -> Iterator[None]:
    """Send a notice if a run fails meanwhile; the error is raised again."""
    try:
        yield
    except Exception:
        send_notice(project, "failed", pipeline)
        raise


def notice_alarms(project: Project, record: RunRecord) -> None:
    """Send a notice of the alarms that the completed run before did not know."""
    from curvote.pipeline.run.results import reputations

    alarms: list[set[str]] = [set()]
    for run in load_records(project, record.pipeline, "completed", 2):
        alarms.append(set())
        with contextlib.suppress(UserError):  # its tables are gone
            for model in reputations(project, run).values():
                alarms[-1].update(model.alarms)
    if new := ", ".join(sorted(alarms[-1] - alarms[-2])):
        send_notice(project, "alarm", record.pipeline, run=record.id, alarm=new)


def _send_apprise(urls: list[str], notice: dict[str, Any]) -> None:
    """Send a notice to every address, which only the environment holds."""
    from apprise import Apprise

    logging.getLogger("apprise").setLevel(logging.CRITICAL)
    kind, form = _EVENT_TITLES[notice["event"]]
    title = f"curvote: {form.format(pipeline=notice['pipeline'])}"
    body = "\n".join(f"{name}: {value}" for name, value in notice.items())
    senders = Apprise()
    if not all(map(senders.add, urls)):
        _warn_not_sent(f"an address in {URLS_VARIABLE} is none that Apprise knows")
    try:
        send = partial(senders.notify, title=title, body=body, notify_type=kind)
        delivered = not len(senders) or send()
    except Exception as error:  # noqa: BLE001 - theirs; a notice must not fail a run
        _warn_not_sent(type(error).__name__)
    else:
        if not delivered:
            _warn_not_sent(f"not every address in {URLS_VARIABLE} took it")


def _warn_not_sent(why: str) -> None:
    lines.write_line(f"the notice could not be sent: {why}", "warning")


def report_missed(
    project: Project, say: Callable[..., None], pipeline: str, fact: dict[str, Any]
) -> None:
    """Print missed firings, and send a notice.

    ``fact`` holds ``count``; ``first`` and ``last`` where nothing could run; and
    ``made_up`` where one run makes up for them.
    """
    count = fact["count"]
    how_many = f"{count} scheduled runs" if count > 1 else "a scheduled run"
    if "first" not in fact:
        say(f"did not start {how_many}: a run was under way", pipeline=pipeline)
        return
    last = datetime.fromisoformat(fact["last"]).strftime("%Y-%m-%d %H:%M:%S UTC")
    then = "one run makes up for it now" if fact["made_up"] else "none makes up for it"
    text = f"missed {how_many}, the latest at {last}; {then}"
    say(text, "warning", pipeline=pipeline)
    send_notice(project, "missed", pipeline, count=count, last=fact["last"])
