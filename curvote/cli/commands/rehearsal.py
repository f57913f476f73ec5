"""Rehearsal of a production pipeline: its whole day, with made-up clients.

It takes place in a project of its own, which holds the pipeline for few clients, new
keys, an intake, and each client's ledger. The clients are made up from the published
task alone; from the real project nothing is read but its pipelines.yaml.
"""

import io
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import typer.main

from curvote.base.errors import InternalError, UserError
from curvote.base.text import format_budget
from curvote.cli.client.answer import Way
from curvote.cli.commands import client as client_commands
from curvote.cli.tables import print_outcomes
from curvote.client import sending
from curvote.flows.environment import process_tag
from curvote.flows.intake.processes import serve_intake
from curvote.intake.box import Intake
from curvote.ledger import places
from curvote.messages.answer import validate_task
from curvote.messages.message import learning_messages, message_of, messages_of
from curvote.pipeline.config.file import ConfiguredPipeline, PipelinesFile
from curvote.pipeline.config.project import PIPELINES, Project
from curvote.pipeline.config.schema import min_messages_key
from curvote.pipeline.release import publication
from curvote.pipeline.release.windows import release_windows
from curvote.pipeline.run.execution import execute_step
from curvote.pipeline.run.planner import Plan, make_plan
from curvote.pipeline.run.results import production_outcomes
from curvote.pipeline.store import records
from curvote.report.page import draw_report
from curvote.wire import envelope as envelopes
from curvote.wire.envelope import Invitation
from curvote.wire.signing import ServerKey, open_signed

# Made-up clients of a round, and records of a table, where no more are needed.
FEWEST: Final = 30
_SPARE: Final = 2  # beyond those: one answers when the round is closed
_READY_WITHIN: Final = 60.0  # seconds


def run_once(
    project: Project, configured: ConfiguredPipeline, *, new_release: bool = False
) -> tuple[Plan, records.RunRecord, list[publication.PublishedRound]]:
    """Do what `curvote run` does in this process: all that is not blocked, publish."""
    plan = make_plan(project, configured, fetch=True, new_release=new_release)
    record = records.record_start(project, plan.configured, plan.steps, process_tag())
    for step in plan.steps_to_run():
        execute_step(project, step)
    opened = [*publication.publish_rounds(project, plan.configured, plan.steps)]
    status = "blocked" if plan.blocked_steps() else "completed"
    return plan, records.record_end(project, record, status), opened


def derive_project(
    real: Project, name: str, clients: int | None, folder: Path
) -> ConfiguredPipeline:
    """Write the pipeline for few made-up clients into ``folder``, and return it.

    UserError: nobody is asked by envelope, or fewer clients than the server can use.
    """
    file = PipelinesFile(real)
    pipeline = file.configure_pipeline(name).pipeline
    if pipeline.intake is None:
        why = f"{name} is a study, which asks nobody: `curvote run {name}` runs it"
        if pipeline.production:
            why = f"the records of {name} are here, so that nobody is invited and"
            why += f" nothing is sent: `curvote plan {name}` says what a run would"
            why += " release about whom, and draws nothing"
        raise UserError(f"there is nothing to rehearse: {why}.")
    full: dict[str, Any] = pipeline.model_dump(mode="json")
    messages = messages_of if pipeline.judges else learning_messages
    kinds, sizes = messages(pipeline.protocol), full.get("clients") or {}
    least = max(kind.min_messages(full) for kind in kinds.values())
    if clients is not None and clients < least:
        raise UserError(
            f"--clients {clients}: the server of {name} needs {least} messages of a"
            " round to go on. Give as many or more, or leave the option out."
        )
    needed = max(clients or FEWEST, least)
    senders = [kind.senders.roles for kind in kinds.values()]
    asks_in_windows = any(kind.windows(full) for kind in kinds.values())
    while True:
        values: dict[str, Any] = deepcopy(file.values["pipelines"][name])
        values.pop("schedule", None)
        if full["intake"]["online"] or asks_in_windows:
            values["intake"] |= {"fold": _SPARE}
        counts = sizes | {role: 0 for roles in senders for role in roles}
        for message, kind in kinds.items():
            for section, terms in kind.invited_settings(needed + _SPARE).items():
                values[section] = (values.get(section) or {}) | terms
            if not (kind.per_table or asks_in_windows):
                values["intake"] |= {min_messages_key(message): needed}
            grown = [role for role in kind.senders.roles if sizes.get(role)]
            while grown and kind.invited_count({"clients": counts}) < needed + _SPARE:
                counts |= {role: counts[role] + 1 for role in grown}
        values |= {"clients": counts} if "clients" in values else {}
        judges = counts.get("judge", 0)
        share = judges / (
            judges + sum(counts.get(r, 0) for r in ("train", "vote")) or 1
        )
        values |= {"judges": share} if pipeline.judges else {}
        if "path" in values.get("source", {}):
            values["source"]["path"] = "made-up.csv"
            _write_public_table(values["source"], needed + _SPARE, folder)
        texts = {"defaults": file.values.get("defaults"), "pipelines": {name: values}}
        (folder / PIPELINES).write_text(json.dumps(texts, default=str), "utf-8")
        try:
            return PipelinesFile(Project(folder)).configure_pipeline(name)
        except UserError:  # such as fewer voters than classifiers
            if clients is not None or needed >= max(sizes.values(), default=0):
                raise
            needed = 2 * needed


def _write_public_table(source: dict[str, Any], rows: int, folder: Path) -> None:
    """Write made-up public records; UserError: a source of another form."""
    rng, texts = np.random.default_rng(0), source.get("categories", {})
    if not {"record", "features"} <= source.keys():
        raise UserError(f"no made-up file has the form of source {source['name']}.")
    columns = {source["record"]: [f"made-up-{n}" for n in range(1, rows + 1)]}
    for name in source["features"]:
        words = texts.get(name)
        column = rng.choice(words, rows) if words else rng.normal(size=rows)
        columns[name] = column.tolist()
    pd.DataFrame(columns).to_csv(folder / source["path"], index=False)


_command_of: Any = cache(typer.main.get_command)


@dataclass(frozen=True)
class MadeUpClient:
    """A client with a home: an invitation, made-up data, a ledger and an outbox.

    ``words`` are the options of `curvote client answer` that say with what; ``cost`` is
    that of one message, ``server`` the fingerprint of who asks.
    """

    name: str
    home: Path
    task: Path
    invitation: Invitation
    words: dict[str, str]
    server: str
    cost: Any

    @classmethod
    def invited(cls, name: str, home: Path, path: Path, invited: Invitation) -> Any:
        """Make the home of a client, with data from the bounds that the task states."""
        home.mkdir(parents=True)
        signed, n = open_signed(path.read_bytes()), FEWEST
        task: Any = validate_task(signed.document["task"], invited.server)
        rng, way = np.random.default_rng([*name.encode()]), Way.of_task(task)[0]
        classes = [*map(str, task.classes)]
        place = int(rng.integers(len(classes)))
        words = {"label": classes[place]}
        if way is Way.TABLE:
            bounds = {feature: ends for feature, *ends in task.features}
            table: dict[str, Any] = {
                name: rng.uniform(low, high, n) for name, (low, high) in bounds.items()
            }
            table |= {"record": range(n), "label": np.resize(classes, n)}
            words = {"table": str(home / "table.csv")}
            pd.DataFrame(table).to_csv(words["table"], index=False)
            form: dict[str, Any] = {"id": "record", "label": "label"}
            form["columns"] = {name: {"bounds": ends} for name, ends in bounds.items()}
            form["classes"] = classes
            (home / "form.yaml").write_text(json.dumps(form))
        if way is Way.OUTCOME:
            words = message_of(task).made_up_words(task, rng)
        if way is Way.CURVE:
            words["curve"], public = str(home / "curve.csv"), task.encoding.constants
            numbers = rng.normal(size=task.encoding.d) + place - (len(classes) - 1) / 2
            numbers = public.get("centre", 0.0) + public.get("scale", 1.0) * numbers
            matrix = task.encoding.projection.matrix
            np.savetxt(words["curve"], np.linalg.pinv(matrix) @ numbers)
        client = cls(name, home, path, invited, words, signed.fingerprint, task.cost(n))
        return client.with_invitation(invited)

    def with_invitation(self, invited: Invitation) -> "MadeUpClient":
        """Return the client with another invitation in its hands."""
        path = self.home / f"invitation-{invited.task[:8]}.json"
        path.write_text(json.dumps(invited.to_json()))
        return replace(self, words=self.words | {"invitation": str(path)})

    def run(self, folder: str, *words: str) -> tuple[str, str]:
        """Run `curvote client` with the state in ``folder``; return what it prints."""
        os.environ["XDG_STATE_HOME"] = str(self.home / folder)
        if not places.ledger_path().is_relative_to(self.home):
            raise InternalError(f"{places.ledger_path()} is not that of {self.name}")
        out, notices = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(notices):
            _command_of(client_commands.app).main([*words], standalone_mode=False)
        return out.getvalue(), notices.getvalue()

    def answer(
        self, *more: str, folder: str = "own", share: float = 1.0
    ) -> tuple[dict[str, Any], str]:
        """Answer, with a cap of ``share`` of the cost; return summary and notices."""
        if not (self.home / folder).exists():
            form = ["--form", str(self.home / "form.yaml")] * ("table" in self.words)
            limits = [f"--cap={share * self.cost.epsilon!r}"]
            limits += [f"--cap-delta={self.cost.delta!r}"] * bool(self.cost.delta)
            self.run(folder, "init", *limits, f"--server={self.server}", *form)
        words = [f"--{option}={value}" for option, value in self.words.items()]
        options = f"--task={self.task}", *words, "--yes", "--json"
        out, notices = self.run(folder, "answer", *options, *more)
        return json.loads(out), notices.strip()


def _enlarge(value: Any) -> Any:
    """Return a number, or those of a list, as no honest client sends them."""
    if isinstance(value, list):
        return [_enlarge(inner) for inner in value]
    return 10**15 if type(value) is int else 1e300


@dataclass
class Rehearsal:
    """The day of one pipeline in a project of its own; ``surprises`` are faults."""

    project: Project
    configured: ConfiguredPipeline
    url: str
    honest: int = 0
    digests: list[str] = field(default_factory=list)
    surprises: list[str] = field(default_factory=list)

    def tell(self, who: str, text: str) -> None:
        """Print one line of the day."""
        print(f"{who:<12}  {text}", flush=True)

    def run(
        self, *, new_release: bool = False
    ) -> tuple[records.RunRecord, list[publication.PublishedRound]]:
        """Run the pipeline, and tell how far it came."""
        run = run_once(self.project, self.configured, new_release=new_release)
        plan, record, opened = run
        for round_ in opened:
            names = f"{round_.task.name} (signed) and {round_.invitations.name}"
            self.tell("server", f"publishes {names}")
        for step in plan.blocked_steps()[:1]:
            self.tell("server", step.reason)
        return record, opened

    def post(
        self, who: str, deed: str, envelope: bytes, status: int, then: str = ""
    ) -> None:
        """Send an envelope, tell what the server answers, note another status."""
        answer = sending.try_sending(sending.service_address(self.url), envelope)
        code, words = (answer.status, answer.words) if answer else (0, "nothing")
        self.tell(who, f"{deed}: the server answers {code} {words}{then}")
        if code != status:
            self.surprises.append(f"{deed}: {code} in place of {status}")

    def refuse(self, client: MadeUpClient, deed: str, *more: str, **state: Any) -> None:
        """Let a client refuse at home, and tell why."""
        try:
            client.answer(*more, **state)
        except UserError as error:
            self.tell(client.name, f"{deed} and refuses at home: {error}")
        else:
            self.surprises.append(f"{deed}: not refused")

    def answer_round(
        self, opened: publication.PublishedRound, late: int
    ) -> list[MadeUpClient]:
        """Let made-up clients answer a round; return those who come late, so many.

        Where each is waited for, such as servers with tables, it is one who answered.
        """
        clients: list[MadeUpClient] = []
        earlier = self.honest + len(self.digests)
        invitations = publication.read_invitations(opened.invitations)
        for number, invited in enumerate(invitations, 1 + earlier):
            name = invited.server or invited.record or f"client {number}"
            home = self.project.root / "clients" / opened.task.stem / str(number)
            clients.append(MadeUpClient.invited(name, home, opened.task, invited))
        first, document = clients[0], open_signed(opened.task.read_bytes()).document
        self.try_everything(first, document)
        last = [first] if "table" in first.words else clients[-late:]
        clients = [
            client for client in clients if client is first or client not in last
        ]
        for client in clients[1:]:
            done, _ = client.answer(f"--send={self.url}")
            if done["sent"] != "accepted":
                self.surprises.append(f"{client.name}: {done['sent']}")
        cost = format_budget(first.cost.epsilon, first.cost.delta)
        rest, how = f"{len(clients) - 1} others", "each from a ledger of its own"
        self.tell(rest, f"answer, {how}: accepted. Each would have spent {cost}")
        self.digests.append(first.invitation.task)
        self.honest += len(clients)
        return last

    def try_everything(self, client: MadeUpClient, document: dict[str, Any]) -> None:
        """Let one client meet all refusals, then answer, then answer again."""
        invited, who, seal_to = client.invitation, client.name, document["seal_to"]
        cost = format_budget(client.cost.epsilon, client.cost.delta)
        deed = f"is asked for {cost}, twice its cap,"
        self.refuse(client, deed, folder="poor", share=0.5)
        forged = client.home / "forged.task.json"
        forged.write_bytes(ServerKey.at(client.home / "thief.key").sign(document))
        deed = "gets the task with a stranger's signature"
        self.refuse(replace(client, task=forged), deed)
        digest = self.digests[-1] if self.digests else "0" * 64
        stale = replace(invited, task=digest)
        deed = "has an invitation to another task"
        self.refuse(client.with_invitation(stale), deed)
        # A second ledger, as a changed program or a second device has one.
        second = Path(client.answer(folder="second")[0]["envelope"]).read_bytes()
        line = second
        if envelopes.is_sealed(second):
            with Intake(self.project.intake) as intake:
                private = intake.seal(intake.rounds(self.configured.name)[-1].id)
            _, line = envelopes.open_sealed(second, lambda _: private)
        payload = envelopes.read_envelope(line).payload
        sizes = {k: v for k, v in payload.items() if isinstance(v, float | list)}
        sizes = sizes or {k: v for k, v in payload.items() if type(v) is int}
        sizes = sizes or payload  # a bit alone
        absurd = payload | {name: _enlarge(value) for name, value in sizes.items()}
        nobody = replace(invited, id="0" * 32)
        thief = replace(invited, key="0" * len(invited.key))
        for deed, way_in, content, status in (
            ("sends an invitation that was never issued", nobody, payload, 403),
            ("sends with a forged seal", thief, payload, 403),
            ("answers another task", stale, payload, 409 if self.digests else 404),
            ("sends numbers that no honest client draws", invited, absurd, 422),
        ):
            sealed = envelopes.seal_message(way_in, content, seal_to)
            self.post("somebody", deed, sealed, status)
        self.post("somebody", "sends half an envelope", second[:-200], 400)
        self.post("somebody", "sends 300 KiB", b" " * 300 * 1024, 413)
        if seal_to is not None:
            self.post("somebody", "does not seal", line, 400)
        done, notices = client.answer()
        self.tell(who, f"agrees to: {notices.splitlines()[-1]}")
        envelope = Path(done["envelope"]).read_bytes()
        self.post(who, "answers", envelope, 201, f". It would have spent {cost}")
        deed, then = "sends the same again, as if that was lost", ". It counts once"
        self.post(who, deed, envelope, 200, f"{then}, and spends nothing more")
        self.refuse(client, "is asked to answer once more", "--new-release")
        deed, then = "answers again from a second ledger", ". The first answer stays"
        self.post(who, deed, second, 200, then)

    def play(self) -> records.RunRecord:
        """Play all rounds until the pipeline is complete; return the last run."""
        windows = release_windows(self.configured)
        record, opened = self.run()
        while opened:
            # What comes late to a window is used once it is not alone.
            late = [
                c for o in opened for c in self.answer_round(o, 2 if windows else 1)
            ]
            record, opened = self.run()
            with Intake(self.project.intake) as intake:
                still_open = [r for r in intake.rounds(record.pipeline) if not r.closed]
            if windows and not self.digests[1:]:
                self.tell("server", f"waits for {windows.length:g} s: the next window")
                record, opened = self.run(new_release=True)
            elif still_open and not opened and not windows:
                closed = publication.close_round(self.project, self.configured)
                self.tell("server", f"closes the round of {closed.asks}s by hand")
                record, opened = self.run()
            for client in late:
                status, then, (done, _) = 200, ". It was there before", client.answer()
                envelope = Path(done["envelope"]).read_bytes()
                if windows:
                    status, then = 201, ". It counts in the window that asked"
                    self.honest += 1
                elif done["new"]:  # who seals does so to a key that is gone by now
                    status = 400 if envelopes.is_sealed(envelope) else 410
                    then = ". It is spent all the same: tell people until when"
                self.post(client.name, "comes after the close", envelope, status, then)
        if windows:
            record, _ = self.run()
        with Intake(self.project.intake) as intake:
            count = sum(round_.accepted for round_ in intake.rounds(record.pipeline))
        self.tell("server", f"has {count} messages of {self.honest} honest clients")
        if count != self.honest:
            self.surprises.append(f"{count} messages of {self.honest} honest clients")
        return record


@contextmanager
def _served(project: Project, pipeline: str) -> Iterator[str]:
    """Serve the intake in a process that ends with this one; yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        host, port = probe.getsockname()
    service = project, pipeline, host, port, 1
    process = get_context("spawn").Process(target=serve_intake, args=service)
    process.start()
    url, end = f"http://{host}:{port}", time.monotonic() + _READY_WITHIN
    try:
        while sending.try_sending(sending.service_address(url), b"{}") is None:
            if not process.is_alive() or time.monotonic() > end:
                raise UserError("the intake did not start: see what it printed above.")
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.join()


def rehearse_pipeline(
    real: Project, name: str, clients: int | None, keep: Path | None
) -> None:
    """Play the day of a pipeline in a folder that is deleted, or kept as ``keep``."""
    try:
        if keep is not None:
            keep.mkdir(mode=0o700)
    except OSError as error:
        why = error.strerror or error
        raise UserError(f"--keep {keep}: {why}. Name a folder to be made.") from None
    folder = Path(keep or tempfile.mkdtemp(prefix="curvote-rehearsal-")).resolve()
    # Else they name the real intake, and the real owner's ledger.
    os.environ.pop("CURVOTE_INTAKE_URL", None)
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    project = Project(folder)
    try:
        configured = derive_project(real, name, clients, folder)
        print(
            f"rehearsal of {name} in {folder}: keys, ledgers, intake and clients are"
            f" made up.\nOf {real.root} nothing is used but {PIPELINES}."
        )
        with _served(project, name) as url:
            key = publication.server_key(project).fingerprint
            rehearsal = Rehearsal(project, configured, url)
            rehearsal.tell("server", f"signs by the key {key}")
            record = rehearsal.play()
        page = draw_report(project, record)
        if production_outcomes(project, record):
            print_outcomes(project, record)
        if rehearsal.surprises:
            raise InternalError("; ".join(rehearsal.surprises))
        print("Nothing was spent. The numbers are about made-up clients, not yours.")
        if keep is not None:
            print(f"kept: {folder}\nreport: {page}")
    finally:
        if keep is None or not any(folder.iterdir()):
            shutil.rmtree(folder, ignore_errors=True)
