"""Rehearsal of a production pipeline: its whole day, with made-up clients.

It takes place in a project of its own, which holds the pipeline for few clients, new
keys, an intake, and each client's ledger. The clients are made up from the published
task alone; from the real project nothing is read but its pipelines.yaml.
"""

import io
import json
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from copy import deepcopy
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from curvote.base.errors import InternalError, UserError
from curvote.base.privacy import Budget
from curvote.base.text import format_budget
from curvote.cli.client.answer import (
    AnsweringOwner,
    Holdings,
    ServerQuestion,
    Way,
)
from curvote.cli.tables import print_outcomes
from curvote.client import sending
from curvote.client import table as forms
from curvote.flows.environment import process_tag
from curvote.flows.intake.processes import serve_intake
from curvote.intake.admission import Round
from curvote.intake.box import Intake
from curvote.ledger import places
from curvote.ledger.account import Account, AccountOptions, open_account
from curvote.ledger.register import open_books
from curvote.messages.answer import validate_task
from curvote.messages.message import message_of, messages_of
from curvote.pipeline.config.file import ConfiguredPipeline, PipelinesFile
from curvote.pipeline.config.project import PIPELINES, Project
from curvote.pipeline.config.schema import min_messages_key
from curvote.pipeline.release.publication import (
    PublishedRound,
    close_round,
    publish_rounds,
    server_key,
)
from curvote.pipeline.run.execution import execute_step
from curvote.pipeline.run.planner import Plan, make_plan
from curvote.pipeline.run.results import production_outcomes
from curvote.pipeline.store import records
from curvote.pipeline.store.records import RunRecord
from curvote.report.page import draw_report
from curvote.wire.envelope import Invitation, seal_message
from curvote.wire.signing import ServerKey, open_signed

# Made-up clients of a round, and records of a table, where no more are needed.
FEWEST: Final = 30
_SPARE: Final = 2  # beyond those: one answers when the round is closed
_HOST: Final = "127.0.0.1"
_READY_WITHIN: Final = 60.0  # seconds
_OTHER_DIGEST: Final = "0" * 64


def run_once(
    project: Project, configured: ConfiguredPipeline
) -> tuple[Plan, RunRecord, list[PublishedRound]]:
    """Do what `curvote run` does in this process: all that is not blocked, publish."""
    plan = make_plan(project, configured, fetch=True)
    record = records.record_start(project, plan.configured, plan.steps, process_tag())
    for step in plan.steps_to_run():
        execute_step(project, step)
    opened = [*publish_rounds(project, plan.configured, plan.steps)]
    status = "blocked" if plan.blocked_steps() else "completed"
    return plan, records.record_end(project, record, status), opened


def derive_project(
    real: Project, name: str, clients: int | None, folder: Path
) -> ConfiguredPipeline:
    """Write the pipeline for few made-up clients into ``folder``, and return it.

    UserError: nobody is asked by envelope, or too few clients for what the server does.
    """
    file = PipelinesFile(real)
    configured = file.configure_pipeline(name)
    pipeline = configured.pipeline
    if not pipeline.production:
        raise UserError(
            f"{name} is a study: it asks nobody, so there is nothing to rehearse."
            f" `curvote run {name}` runs it."
        )
    if pipeline.intake is None:
        raise UserError(
            f"the records of {name} are here, so nobody is invited and no message"
            f" travels: there is nothing to rehearse. `curvote plan {name}` says what a"
            " run would release about whom, and draws nothing."
        )
    full, kinds = configured.values(), messages_of(pipeline.protocol)
    least = max(kind.min_messages(full) for kind in kinds.values())
    if clients is not None and clients < least:
        raise UserError(
            f"--clients {clients}: the server of {name} needs {least} messages of a"
            " round to go on. Give as many or more, or leave the option out."
        )
    needed = max(clients or FEWEST, least)
    most = max(needed, *(kind.invited_count(full) for kind in kinds.values()))
    stated = file.values["pipelines"][name]
    while True:
        values = _with_clients(stated, full, kinds, needed)
        if "path" in values["source"]:
            values["source"]["path"] = "made-up.csv"
            _write_public_table(values["source"], needed + _SPARE, folder)
        text = json.dumps(
            {"defaults": file.values.get("defaults"), "pipelines": {name: values}},
            default=str,
        )
        (folder / PIPELINES).write_text(text, encoding="utf-8")
        try:
            return PipelinesFile(Project(folder)).configure_pipeline(name)
        except UserError:  # such as fewer voters than classifiers
            if clients is not None or needed >= most:
                raise
            needed = min(2 * needed, most)


def _with_clients(
    stated: dict[str, Any], full: dict[str, Any], kinds: Any, needed: int
) -> dict[str, Any]:
    """Return the settings of a pipeline whose rounds wait for ``needed`` messages."""
    values = {k: v for k, v in deepcopy(stated).items() if k != "schedule"}
    if full["intake"]["online"]:
        values["intake"] = {**values["intake"], "fold": _SPARE}
    sizes = full.get("clients") or {}
    roles = {role for kind in kinds.values() for role in kind.senders.roles}
    counts = {role: 0 if role in roles else n for role, n in sizes.items()}
    for name, kind in kinds.items():
        if not kind.per_table:
            values["intake"] = {**values["intake"], min_messages_key(name): needed}
        grown = [role for role in kind.senders.roles if sizes.get(role)]
        while grown and kind.invited_count({"clients": counts}) < needed + _SPARE:
            counts |= {role: counts[role] + 1 for role in grown}
    return values | ({"clients": counts} if "clients" in stated else {})


def _write_public_table(source: dict[str, Any], rows: int, folder: Path) -> None:
    """Write made-up public records; UserError: a source of another form."""
    rng, texts = np.random.default_rng(0), source.get("categories", {})
    try:
        columns = {source["record"]: [f"made-up-{n}" for n in range(1, rows + 1)]}
        for name in source["features"]:
            words = texts.get(name)
            drawn = rng.choice(words, rows) if words else rng.normal(size=rows)
            columns[name] = drawn.tolist()
    except (KeyError, TypeError):
        raise UserError(
            f"source {source['name']} reads a file of a form that no made-up one has."
        ) from None
    pd.DataFrame(columns).to_csv(folder / source["path"], index=False)


@dataclass(frozen=True)
class MadeUpClient:
    """A client with a home: an invitation, made-up data, a ledger and an outbox."""

    name: str
    home: Path
    task_file: Path
    invitation: Invitation
    holdings: Holdings

    @classmethod
    def invited(
        cls, name: str, home: Path, task_file: Path, invitation: Invitation, number: int
    ) -> "MadeUpClient":
        """Make the home of a client, with data from the bounds that the task states."""
        home.mkdir(parents=True)
        rng = np.random.default_rng([number, *name.encode()])
        document = open_signed(task_file.read_bytes()).document["task"]
        task: Any = validate_task(document, invitation.server)
        path, label = home / "invitation.json", None
        path.write_text(json.dumps(invitation.to_json()))
        curve, table, way = None, None, Way.of_task(task)[0]
        classes = list(task.classes)
        place = int(rng.integers(len(classes)))
        if way is Way.TABLE:
            table = home / "table.csv"
            drawn: dict[str, Any] = {
                feature: rng.uniform(lower, upper, number)
                for feature, lower, upper in task.features
            }
            drawn["record"] = [f"{name}-{n}" for n in range(number)]
            drawn["label"] = [classes[n % len(classes)] for n in range(number)]
            pd.DataFrame(drawn).to_csv(table, index=False)
        else:
            label = classes[place]
        if way is Way.CURVE:
            encoding, curve = task.encoding, home / "curve.csv"
            shift = place - (len(classes) - 1) / 2
            spread = encoding.constants.get("scale", 1.0)
            middle = encoding.constants.get("centre", 0.0)
            numbers = middle + spread * (rng.normal(size=encoding.d) + shift)
            np.savetxt(curve, np.linalg.pinv(encoding.projection.matrix) @ numbers)
        holdings = Holdings(path, None, curve, label, table, None, None, False)
        return cls(name, home, task_file, invitation, holdings)

    def question(self) -> ServerQuestion:
        """Return the question of the published task."""
        return ServerQuestion.from_files("answer", self.task_file, self.holdings)

    def owner(
        self, cap: Budget, server: str, *, anew: bool = False, folder: str = "own"
    ) -> AnsweringOwner:
        """Return the owner with a ledger that stands in the client's own home."""
        os.environ["XDG_STATE_HOME"] = str(self.home / folder)
        register = places.register_path()
        if not register.is_relative_to(self.home.resolve()):
            raise InternalError(f"{register} is not the register of {self.name}")
        owner = AnsweringOwner(
            register.with_name("ledger.sqlite"),
            register.with_name("outbox"),
            None,
            anew=anew,
            yes=True,
        )
        with open_books(owner.ledger, register) as (book, _):
            if Account.from_ledger(book).chosen:
                return owner
            options = AccountOptions(self.name, cap.epsilon, cap.delta, server)
            open_account(book, options)
            task: Any = self.question().task
            if self.holdings.table is not None:
                columns = {
                    name: forms.Column(bounds=(lower, upper))
                    for name, lower, upper in task.features
                }
                classes = tuple(task.classes)
                form = forms.Form(
                    id="record", label="label", classes=classes, columns=columns
                )
                forms.store_form(book, form)
        return owner

    def payload(self, owner: AnsweringOwner) -> dict[str, Any]:
        """Draw a message beside the ledger, as a changed program would."""
        with open_books(owner.ledger, places.register_path()) as (book, _):
            account, question = Account.from_ledger(book), self.question()
            proposal = question.proposal(self.holdings, book, account)
            if proposal.read is None:
                raise InternalError(f"{self.name} has nothing to draw")
            return proposal.read()()


def _impossible(payload: dict[str, Any]) -> dict[str, Any]:
    """Return a payload of the right form that no honest client can send."""

    def enlarge(value: Any) -> Any:
        if isinstance(value, list):
            return [enlarge(inner) for inner in value]
        return 10**15 if type(value) is int else 1e300

    lists = {k: enlarge(v) for k, v in payload.items() if isinstance(v, list | float)}
    whole = {k: enlarge(v) for k, v in payload.items() if type(v) is int}
    return payload | (lists or whole)


@dataclass
class Rehearsal:
    """The day of one pipeline in a project of its own; ``wrong`` are surprises."""

    project: Project
    configured: ConfiguredPipeline
    url: str = ""
    rounds: int = 0
    honest: int = 0
    digests: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def tell(self, who: str, text: str) -> None:
        """Print one line of the day."""
        print(f"{who:<12}  {text}", flush=True)

    def run(self) -> tuple[RunRecord, list[PublishedRound]]:
        """Run the pipeline, and tell how far it came."""
        plan, record, opened = run_once(self.project, self.configured)
        for round_ in opened:
            names = f"{round_.task.name} (signed) and {round_.invitations.name}"
            self.tell("server", f"publishes {names}")
        if blocked := plan.blocked_steps():
            self.tell("server", f"waits: {blocked[0].reason}")
        return record, opened

    def post(
        self, who: str, deed: str, envelope: bytes, wanted: int, then: str = ""
    ) -> None:
        """Send an envelope, tell what the server answered, and note a surprise."""
        answer = sending.try_sending(sending.service_address(self.url), envelope)
        status, words = (answer.status, answer.words) if answer else (0, "no answer")
        after = f". {then}" if then else ""
        self.tell(who, f"{deed}: the server answers {status} {words}{after}")
        if status != wanted:
            self.wrong.append(f"{deed}: {status} in place of {wanted}")

    def refuse(self, who: str, deed: str, answer: Callable[[], object]) -> None:
        """Let a client refuse at home, and tell why."""
        try:
            with redirect_stderr(io.StringIO()):
                answer()
        except UserError as error:
            self.tell(who, f"{deed} and refuses at home: {error}")
        else:
            self.wrong.append(f"{deed}: not refused")

    def answer_quietly(
        self, client: MadeUpClient, owner: AnsweringOwner
    ) -> dict[str, Any]:
        """Release a message without its lines of consent; return the summary."""
        with redirect_stderr(io.StringIO()):
            return owner.answer(client.question(), client.holdings)

    def answer_round(self, opened: PublishedRound) -> MadeUpClient:
        """Let made-up clients answer a round; return one who comes when it is closed.

        Where each is waited for, such as servers with tables, it is one who answered.
        """
        self.rounds += 1
        clients = []
        lines = opened.invitations.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            invitation = Invitation.from_json(json.loads(line))
            name = invitation.server or invitation.record or f"client {number}"
            home = self.project.root / "clients" / f"round-{self.rounds}" / str(number)
            known = opened.task, invitation
            clients.append(MadeUpClient.invited(name, home, *known, FEWEST))
        first, question = clients[0], clients[0].question()
        cap = question.task.cost(FEWEST)
        self._try_everything(first, cap)
        late = first if message_of(question.task).per_table else clients.pop()
        for client in clients[1:]:
            owner = client.owner(cap, question.server)
            done = self.answer_quietly(client, owner)
            sent = sending.send_envelope(self.url, Path(done["envelope"]).read_bytes())
            if sent != "accepted":
                self.wrong.append(f"{client.name}: {sent}")
        self.tell(
            f"{len(clients) - 1} others",
            "answer, each with a ledger of its own: accepted. Each would have spent"
            f" {format_budget(cap.epsilon, cap.delta)}",
        )
        self.digests.append(question.task.digest())
        self.honest += len(clients)
        return late

    def _try_everything(self, client: MadeUpClient, cap: Budget) -> None:
        """Let one client meet all refusals, then answer, then answer again."""
        question, invited, who = client.question(), client.invitation, client.name
        server, seal = question.server, question.seal_to
        half = replace(cap, epsilon=cap.epsilon / 2)
        poor = client.owner(half, server, folder="half")
        self.refuse(
            who,
            f"is asked for {format_budget(cap.epsilon, cap.delta)} with a cap of half",
            lambda: poor.answer(question, client.holdings),
        )
        owner = client.owner(cap, server)
        forged = client.home / "forged.task.json"
        stranger = ServerKey.at(client.home / "stranger.key")
        document = open_signed(client.task_file.read_bytes()).document
        forged.write_bytes(stranger.sign(document))
        unsigned = replace(client, task_file=forged)
        self.refuse(
            who,
            "gets the task with a stranger's signature",
            lambda: owner.answer(unsigned.question(), client.holdings),
        )
        other_digest = self.digests[-1] if self.digests else _OTHER_DIGEST
        stale = replace(invited, task=other_digest)
        other_file = client.home / "other-invitation.json"
        other_file.write_text(json.dumps(stale.to_json()))
        other = replace(client.holdings, invitation=other_file)
        self.refuse(
            who,
            "has an invitation to another task",
            lambda: replace(client, holdings=other).question(),
        )
        payload = client.payload(owner)

        def sealed(invitation: Invitation, content: dict[str, Any]) -> bytes:
            return seal_message(invitation, content, seal)

        nobody = replace(invited, id="0" * 32)
        thief = replace(invited, key="0" * len(invited.key))
        stale_status = 409 if self.digests else 404
        crime = (
            ("sends half an envelope", sealed(invited, payload)[:-200], 400),
            ("sends 300 KiB", b" " * 300 * 1024, 413),
            ("sends an invitation that was never issued", sealed(nobody, payload), 403),
            ("sends with a forged seal", sealed(thief, payload), 403),
            ("answers another task", sealed(stale, payload), stale_status),
            (
                "sends numbers that no honest client draws",
                sealed(invited, _impossible(payload)),
                422,
            ),
        )
        for deed, envelope, status in crime:
            self.post("somebody", deed, envelope, status)
        if seal is not None:
            open_ = replace(invited, seal_to=None)
            self.post(who, "does not seal", seal_message(open_, payload), 400)
        consent = io.StringIO()
        with redirect_stderr(consent):
            done = owner.answer(question, client.holdings)
        self.tell(who, f"agrees to: {consent.getvalue().strip().splitlines()[-1]}")
        spends = f"would have spent {format_budget(done['epsilon'], done['delta'])}"
        envelope = Path(done["envelope"]).read_bytes()
        self.post(who, "answers", envelope, 201, spends)
        again = "It counts once, nothing more is spent"
        self.post(who, "has lost that and sends the same again", envelope, 200, again)
        anew = client.owner(cap, server, anew=True)
        self.refuse(
            who,
            "is asked to answer once more",
            lambda: anew.answer(question, client.holdings),
        )
        second = sealed(invited, client.payload(owner))
        self.post(
            who,
            "sends a second answer by a changed program",
            second,
            200,
            "It is thrown away: the first one counts",
        )

    def day(self) -> RunRecord:
        """Play all rounds until the pipeline is complete; return the last run."""
        record, opened = self.run()
        while opened:
            late = [self.answer_round(round_) for round_ in opened]
            record, opened = self.run()
            if any(not round_.closed for round_ in self.accepted()) and not opened:
                closed = close_round(self.project, self.configured)
                self.tell("server", f"closes the round of {closed.asks}s, by hand")
                record, opened = self.run()
            for client in late:
                question = client.question()
                owner = client.owner(question.task.cost(FEWEST), question.server)
                done = self.answer_quietly(client, owner)
                wanted, then = 200, "It was there before, and counts once"
                if done["new"]:  # one who seals does so to a key that is gone by now
                    wanted = 410 if question.seal_to is None else 400
                    then = "It is spent all the same: say until when"
                envelope = Path(done["envelope"]).read_bytes()
                self.post(client.name, "comes after the close", envelope, wanted, then)
        accepted = sum(round_.accepted for round_ in self.accepted())
        self.tell("server", f"has {accepted} messages, of {self.honest} honest clients")
        if accepted != self.honest:
            self.wrong.append(f"{accepted} messages of {self.honest} honest clients")
        return record

    def accepted(self) -> list[Round]:
        """Return the rounds of the made-up intake."""
        with Intake(self.project.intake) as intake:
            return intake.rounds(self.configured.name)


@contextmanager
def _served(project: Project, pipeline: str) -> Iterator[str]:
    """Serve the intake in a process that ends with this one; yield its address."""
    with socket.create_server((_HOST, 0)) as probe:
        port = probe.getsockname()[1]
    spawn = multiprocessing.get_context("spawn")
    process = spawn.Process(
        target=serve_intake, args=(project, pipeline, _HOST, port, 1)
    )
    process.start()
    try:
        end = time.monotonic() + _READY_WITHIN
        while not _is_ready(port):
            if not process.is_alive() or time.monotonic() > end:
                raise UserError("the intake did not start: see what it printed above.")
            time.sleep(0.1)
        yield f"http://{_HOST}:{port}"
    finally:
        process.terminate()
        process.join()


def _is_ready(port: int) -> bool:
    connection = HTTPConnection(_HOST, port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def rehearse_pipeline(
    real: Project, name: str, clients: int | None, keep: Path | None
) -> None:
    """Play the day of a pipeline in a folder that is deleted, or kept as ``keep``."""
    if keep is not None:
        try:
            keep.mkdir(mode=0o700)
        except OSError as error:
            raise UserError(
                f"--keep {keep}: {error.strerror or error}. Name a new folder."
            ) from None
    folder = Path(keep or tempfile.mkdtemp(prefix="curvote-rehearsal-")).resolve()
    # What names places outside: of the real intake, and of the owner's own ledger.
    os.environ.pop("CURVOTE_INTAKE_URL", None)
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        configured = derive_project(real, name, clients, folder)
        project = Project(folder)
        print(
            f"rehearsal of {name} in {folder}: a project, keys, ledgers and clients of"
            f" its own.\nNothing of {real.root} is used but {PIPELINES}; nothing is"
            " spent."
        )
        with _served(project, name) as url:
            rehearsal = Rehearsal(project, configured, url)
            rehearsal.tell("server", f"signs by key {server_key(project).fingerprint}")
            record = rehearsal.day()
        page = draw_report(project, record)
        if outcomes := production_outcomes(project, record):
            print_outcomes(record, outcomes)
        print("These numbers are about made-up clients and say nothing about yours.")
        if rehearsal.wrong:
            raise InternalError("; ".join(rehearsal.wrong))
        if keep is not None:
            print(f"kept: {folder} (report: {page})")
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    print("Nothing was spent: all keys, ledgers and people above were made up.")
