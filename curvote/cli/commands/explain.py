"""The command `curvote explain`: a word of curvote, or a file that it exchanges.

A file may come from anybody: the strict readers of `curvote.wire` read it, and what is
printed of its names are harmless characters. Of a secret nothing is printed.
"""

from __future__ import annotations

import difflib
import shutil
import textwrap
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from curvote.base.errors import UserError
from curvote.base.text import format_factor, format_names, printable_name

if TYPE_CHECKING:
    from curvote.wire.signing import SignedTask

Rows = list[tuple[str, str]]
Facts = dict[str, Any]
KINDS: Final = ("protocol", "mechanism", "learner", "learner of private labels")
_MOST: Final = 20  # rows of a ledger, or servers, that are listed


def explain(
    words: Annotated[
        list[str],
        typer.Argument(metavar="WORD|FILE", help="A word of curvote, or a file."),
    ],
) -> None:
    """Say in plain words what a setting, a term, a protocol or a file is.

    WORD is a setting (project.size, or size for all of that name), a term of the
    glossary, a protocol, mechanism, learner or data set. FILE is a task, an invitation,
    an envelope or a ledger: what is in it, and what it costs whom.
    """
    word, path = " ".join(words), Path(" ".join(words))
    blocks = [*_explain_word(word.strip().lower())]
    if not blocks and path.exists():
        blocks = [(str(path), _explain_file(path))]
    elif not blocks:
        raise _unknown_word(word, path)
    wrapper = textwrap.TextWrapper(break_long_words=False, break_on_hyphens=False)
    wrapper.width = min(shutil.get_terminal_size().columns, 96)
    for title, rows in blocks:
        typer.echo(title)
        for name, text in rows:
            wrapper.initial_indent = f"  {name:<14}" if name else "  "
            wrapper.subsequent_indent = " " * len(wrapper.initial_indent)
            typer.echo(wrapper.fill(text))


@cache
def explained_texts() -> dict[str, Any]:
    """Return words.toml: texts of words, by kind, and of files."""
    return tomllib.loads((files("curvote.cli") / "words.toml").read_text("utf-8"))


@cache
def _vocabulary() -> tuple[dict[str, dict[str, str]], list[Any]]:
    """Return the texts of words by kind, and all settings."""
    from curvote.pipeline.config import reference

    texts, settings = explained_texts(), reference.setting_texts()
    terms = {k: v for group in texts["glossary"].values() for k, v in group.items()}
    kinds = {"term of the glossary": terms} | {kind: texts[kind] for kind in KINDS}
    try:
        from curvote.data.registry import DATASETS
        from curvote.pipeline.config.schema import editor_schema

        described = reference.list_settings(editor_schema())
    except ModuleNotFoundError:  # the installation of a client knows no pipelines
        return kinds, []
    # A plug-in's data set has no text here.
    sources = {n: settings.get(f"source.{n}", {}).get("text") for n in DATASETS}
    return kinds | {"data set": {n: t for n, t in sources.items() if t}}, described


def _explain_word(word: str) -> Iterator[tuple[str, Rows]]:
    """Yield title and rows of each thing that is called so."""
    from curvote.pipeline.config.reference import text_key

    kinds, settings = _vocabulary()
    singulars = {word, word.removesuffix("s"), word.removesuffix("es")}
    for kind, texts in kinds.items():
        for name in (n for n in texts if n.lower() in singulars):
            yield f"{name}: a {kind}", [("", texts[name])]
    groups: dict[str, list[Any]] = {}
    for setting in settings:
        key = text_key(setting.path)
        if word in (setting.path, key, setting.name):
            groups.setdefault(key, []).append(setting)
    for key, group in groups.items():
        rows = [("", group[0].text)]
        for name in ("values", "unit", "default"):
            phrases = {getattr(setting, name) for setting in group}
            text = phrases.pop() if len(phrases) == 1 else "differs by place"
            rows += [(name, text)] if text else []
        rows += [("example", line) for line in group[0].lines]
        rows += [("stands at", ", ".join(s.path for s in group))] * (len(group) > 1)
        inner = [s.name for s in settings if s.path == f"{group[0].path}.{s.name}"]
        rows += [("has", ", ".join(inner))] * bool(inner)
        yield f"{key}: a setting of pipelines.yaml", rows


def _unknown_word(word: str, path: Path) -> UserError:
    if len(path.parts) > 1 or path.suffix in {".json", ".jsonl", ".sqlite", ".pem"}:
        return UserError(f"there is no file {printable_name(word)}.")
    kinds, settings = _vocabulary()
    names = {name for texts in kinds.values() for name in texts}
    names |= {name for s in settings for name in (s.path, s.name)}
    close = difflib.get_close_matches(word.lower(), sorted(names), n=4)
    hint = f"Did you mean {', '.join(close)}?" if close else "Look in the glossary."
    hint += "" if settings else " Settings need `pip install 'curvote[pipeline]'`."
    return UserError(
        f"{printable_name(word)!r} is no setting, no term of the glossary, no protocol,"
        f" mechanism, learner or data set, and no file. {hint}"
    )


def _explain_file(path: Path) -> Rows:
    """Return the rows of a file; UserError: it is none that curvote exchanges."""
    from curvote.wire import signing

    try:
        with path.open("rb") as stream:
            data = stream.read(signing.LARGEST + 1)
        is_database = data.startswith(b"SQLite format 3\0")
        kind, facts, *more = _ledger_facts(path) if is_database else _read_facts(data)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}.") from None
    except UserError as error:
        raise UserError(
            f"{path} is no task, invitation, envelope or ledger that can be read:"
            f" {str(error).removeprefix(f'{path}: ')}"
        ) from None
    texts = explained_texts()["file"][kind].items()
    return [(name, text.format(**facts)) for name, text in texts] + more


def _read_facts(data: bytes) -> tuple[str, Facts]:
    """Return the kind of a file that goes between server and clients, and its facts."""
    from curvote.wire import envelope, signing
    from curvote.wire.strict_json import parse_json

    if b"PRIVATE KEY" in data[:100]:
        raise UserError("it is a private key. Show it to nobody; it is not read here.")
    several = b"\n{" in data.strip()
    lines = data.splitlines() if several else [data]
    documents = [parse_json(line, signing.LARGEST) for line in lines]
    keys = documents[0].keys() if isinstance(documents[0], dict) else set()
    if {"key", "asks"} <= keys:
        return "invitation", _invitation_facts(documents)
    if several:
        raise UserError("it has several lines, and they are no invitations.")
    if "sealed" in keys:
        seal_to, _ = envelope.read_sealed(data)
        return "sealed", {"key": seal_to[:12], "size": len(data)}
    if "protected" in keys:
        protected = signing.parse_signature(data, signing.LARGEST).protected
        if b'"typ":"curvote-task"' in protected:
            return "task", _task_facts(signing.open_signed(data))
    if keys & {"protected", "seal"}:
        read = envelope.read_envelope(data)
        fields = _list_names(read.payload)
        noise = printable_name(read.unaudited) or "a mechanism of curvote"
        return "envelope", {"task": read.task[:12], "fields": fields, "noise": noise}
    unsigned = "a task without a signature, which no client answers"
    raise UserError(f"it is {unsigned if 'asks' in keys else 'JSON of another kind'}.")


def _task_facts(signed: SignedTask) -> Facts:
    from curvote.chain.lookup import read_task
    from curvote.messages.answer import describe_answer, validate_task
    from curvote.messages.message import message_of

    task: Any = read_task(signed.document["task"])
    servers, party = [*getattr(task, "servers", ())], message_of(task).party
    verdict = "The task is in order: a client may answer it."
    try:
        for server in servers or [None]:
            validate_task(signed.document["task"], server)
    except UserError as error:
        verdict = f"A client refuses it: {error}"
    senders = [(f"Server {printable_name(s)}", *task.servers[s]) for s in servers]
    if not servers:
        senders = [(f"Each {party} who answers", task.epsilon, task.cost().delta)]
    answer = describe_answer(task.for_server(servers[0]) if servers else task, None)
    return {
        "task": task,
        "party": party,
        "answer": answer,
        "verdict": verdict,
        "digest": task.digest()[:12],
        "server": signed.fingerprint,
        "carried": _describe_carrier(signed.document["seal_to"]),
        "cost": " ".join(_describe_cost(*sender) for sender in senders[:_MOST]),
    }


def _describe_carrier(seal_to: str | None) -> str:
    return str(explained_texts()["carrier"]["open" if seal_to is None else "sealed"])


def _describe_cost(who: str, epsilon: float | str, delta: float | None) -> str:
    if isinstance(epsilon, str):
        return f"{who} spends nothing: its records are {epsilon}."
    tail = "delta 1/n^2 for n records" if delta is None else f"delta {delta:g}"
    return (
        f"{who} spends epsilon {epsilon:g}, {tail}: whoever reads the answer may change"
        f" any odds about one record by a factor of at most {format_factor(epsilon)}."
    )


def _invitation_facts(documents: list[Any]) -> Facts:
    from curvote.wire.envelope import Invitation

    read = [Invitation.from_json(document) for document in documents]
    named = [f"server {i.server}" for i in read if i.server is not None]
    for i in read:
        kind = "candidate" if i.record is None else "record"
        named += [f"{kind} {i.subject}"] if i.subject is not None else []
    return {
        "count": "An invitation" if len(read) == 1 else f"{len(read):,} invitations",
        "each": "one message" if len(read) == 1 else "one message each",
        "asks": _list_names(i.asks for i in read),
        "tasks": _list_names(i.task[:12] for i in read),
        "about": _list_names(named) or "one's own record",
        "signers": _list_names((i.signer or "any server")[:12] for i in read),
        "carried": _describe_carrier(read[0].seal_to),
    }


def _list_names(names: Iterable[str]) -> str:
    return format_names([*dict.fromkeys(names)], ", ")


def _ledger_facts(path: Path) -> tuple[Any, ...]:
    """Return kind and facts of a ledger, then a row for each of its newest releases."""
    from curvote.ledger.account import POPULATION
    from curvote.ledger.book import Ledger, checked_copy

    copying = checked_copy(path, Path(gettempdir()), deep=False)
    with copying as copied, Ledger(copied) as book:
        entries, (releases, clients) = book.entries(), book.count_releases()
        caps = {name: f"capped at {cap}" for name, cap in book.caps().items()}
        for name in dict.fromkeys([*caps, *(entry.population for entry in entries)]):
            spent = f"at most {book.most_spent_in(name)} spent"
            caps[name] = f"{printable_name(name)}: {spent}, {caps.get(name, 'no cap')}"
    whose = "one client or server" if caps.keys() <= {POPULATION} else "a project"
    facts = {"whose": whose, "releases": f"{releases:,}", "clients": f"{clients:,}"}
    states, rows = explained_texts()["state"], []
    for number, entry in [*enumerate(entries, 1)][-_MOST:]:
        words = entry.reserved[:10], entry.facts.get("stage", "an answer")
        day, stage = (printable_name(str(word)) for word in words)
        whom = f"{entry.n_clients:,} in population {printable_name(entry.population)}"
        text = (
            f"{day}, {stage}: {entry.budget} of each of {whom}; {states[entry.state]}"
        )
        rows.append((f"row {number}", text))
    return "ledger", facts | {"spent": "; ".join(caps.values()) or "nothing"}, *rows
