"""Mutations of certificates, and what both programs say of them.

``python -m tests.certificate.mutations FILE...`` puts 1,000 of them to both programs:
as many of each certificate, a third of them lies that are signed by the same key.
"""

import json
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from tests.certificate import checkers

TOKEN: Final = r'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|[{}\[\],:]'
MEMBER: Final = r'"(?:kind|epsilon|sent|root|unit)":\s*(?:"[^"]*"|\d+)'
Change = Callable[[random.Random, str], str]


def _spot(pattern: str, new: Change) -> Change:
    """Return a change of one match of a pattern, any of them."""

    def change(rng: random.Random, text: str) -> str:
        at = rng.choice([*re.finditer(pattern, text)])
        return text[: at.start()] + new(rng, at.group()) + text[at.end() :]

    return change


def _swap(rng: random.Random, text: str) -> str:
    values = [m for m in re.finditer(TOKEN, text) if m.group()[0] in '"1234567890']
    first = second = rng.choice(values)
    while first.group() == second.group():
        second = rng.choice(values)
    low, high = sorted([first, second], key=lambda m: m.start())
    between = text[low.end() : high.start()]
    middle = high.group() + between + low.group()
    return text[: low.start()] + middle + text[high.end() :]


def _byte(rng: random.Random, text: str) -> str:
    changed = _spot(r"\S", lambda r, _: chr(r.randrange(256)))(rng, text)
    return changed if _plain(changed) != _plain(text) else _byte(rng, text)


CHANGES: Final[dict[str, Change]] = {
    "a digit": _spot(r"\d", lambda r, t: r.choice("0123456789".replace(t, ""))),
    "a byte": _byte,
    "a number by one": _spot(
        r"\b\d+\b", lambda r, t: str(abs(int(t) + r.choice([-1, 1])) or 2)
    ),
    "a token left out": _spot(TOKEN, lambda *_: ""),
    "a token twice": _spot(TOKEN, lambda _, t: t * 2),
    "a member twice": _spot(MEMBER, lambda _, t: f"{t},{t}"),
    "two values exchanged": _swap,
    "cut off": lambda r, t: t[: r.randrange(len(t.rstrip()))],
    "white space within": _spot(r"(?<=\w)(?=\w)", lambda r, _: r.choice(" \n\t")),
    "another spelling": _spot(r'(?<=")[a-z]', lambda _, t: f"\\u{ord(t):04x}"),
    "something behind": lambda r, t: t + r.choice(["{}", "0", "\0", ","]),
    "something in front": lambda r, t: r.choice(["\xef\xbb\xbf", "[", "1 "]) + t,
}


def _plain(text: str) -> list[str]:
    """Return the tokens of a text, and what is between them but white space."""
    return [*re.findall(TOKEN, text), re.sub(r"\s", "", re.sub(TOKEN, "", text))]


Told = tuple[str, Callable[[Any], Any]]


def _less(value: Any) -> str:
    return str(Fraction(value) * Fraction(999_999, 10**6))


def _more(value: Any) -> Any:
    return value + 1 if isinstance(value, int) else str(Fraction(value) + 1)


def lies(certificate: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield certificates that say what cannot be, each with the place where.

    The same key signs them: only what is computed anew can find them out.
    """
    for path, change in _lies(certificate):
        changed = deepcopy(certificate)
        at: Any = changed
        *outer, last = [int(p) if p.isdecimal() else p for p in path.split(".")]
        for step in outer:
            at = at[step]
        at[last] = change(at[last])
        assert changed != certificate, path
        yield path, changed


def _lies(certificate: dict[str, Any]) -> Iterator[Told]:
    for i, message in enumerate(certificate["messages"]):
        at = f"messages.{i}"
        yield f"{at}.epsilon", lambda _, least=message["least"]: _less(least)
        yield f"{at}.task.digest", lambda v: v[::-1]
        yield f"{at}.task.text", lambda v: v.replace(":", ": ", 1)
        yield f"{at}.law", lambda v: v[1:]
        yield f"{at}.law", lambda v: [*v, v[0]]
        yield f"{at}.records", _more
        yield f"{at}.delta", _more
        yield f"{at}.envelopes.root", lambda v: None if v else "0" * 64
        yield at, lambda v: {**v, "more": 1}
        yield at, lambda v: {name: v[name] for name in v if name != "least"}
        if certificate["protects"]["model"] != "central":  # there nothing contradicts
            yield f"{at}.sent", _more
        for j, law in enumerate(message["law"]):
            to = f"{at}.law.{j}"
            yield f"{to}.kind", lambda _: "laplace"
            yield f"{to}.times", _more
            yield f"{to}.least", _less
            yield f"{to}.least", _more
            for name in {"rate", "distance", "margin", "accept", "p"} & law.keys():
                yield f"{to}.{name}", _less
            if "keep" in law:
                yield f"{to}.keep", lambda v: str((Fraction(v) + 1) / 2)
                yield f"{to}.far", _more
    study, local = {"study": "release", "release": "study"}, ("nobody", "local")
    yield "format", _more
    yield "kind", study.__getitem__
    yield "protects.unit", lambda v: f"{v}s"
    yield "protects.adjacency", lambda v: f"{v}s"
    yield "protects.model", lambda v: local[v == "nobody"]
    yield "sp800_226.epsilon", lambda v: "1" if v is None else _less(v)
    yield "sp800_226.mechanisms", lambda v: [*v, "none"]
    place = "registry.deployment.privacy_loss.privacy_parameters.epsilon"
    yield place, lambda v: 1 if v is None else v * 0.999
    yield "ledger.root", lambda v: "0" if v else "0" * 64
    yield "not_private", lambda v: [*v, 3]
    people = certificate["people"]
    if people is None:
        yield "people", lambda _: {}
        return
    below = {"epsilon": _less(people["spent"]["largest"]), "delta": "0"}
    yield "people.cap", lambda _: below
    yield "people.total", lambda _: below
    yield "people.linked", lambda _: None
    yield "people.spent.mean", _less
    yield "people.spent.largest", _less
    yield "people.spent.people", _more
    yield "people.groups.0.people", _more
    yield "people.groups.0.sends.0", _more


def mutations(
    text: str, count: int, signer: checkers.Signer, rng: random.Random
) -> Iterator[tuple[str, str]]:
    """Yield ``count`` mutations of a certificate, each with what was done.

    It is signed anew by ``signer``. A third are lies by that key, some are signed by a
    stranger, the rest are changes of the file.
    """
    certificate = json.loads(text)["certificate"]
    own, every = signer.text(certificate), [*lies(certificate)]
    told = rng.sample(every, min(count // 3, len(every)))
    for name, lie in told:
        yield f"lie: {name}", signer.text(lie)
    for seed in range(100, 101 + count // 50):
        yield "stranger", checkers.Signer(seed).text(certificate)
    for k in range(count - len(told) - 1 - count // 50):
        name, change = [*CHANGES.items()][k % len(CHANGES)]
        changed = change(rng, own)
        assert _plain(changed) != _plain(own), name
        yield name, changed


def survivors(folder: Path, text: str, count: int, rng: random.Random) -> list[str]:
    """Return what passes of the mutations of a certificate, which itself must hold."""
    signer = checkers.Signer()
    own = "nothing", signer.text(json.loads(text)["certificate"])
    names, texts = zip(own, *mutations(text, count, signer, rng), strict=True)
    lines = checkers.by_python(texts, signer.fingerprint)
    of_page = checkers.by_page(folder, texts, signer.fingerprint)
    passed = [
        f"{name}: {line} / {other}"
        for name, line, other in zip(names, lines, of_page, strict=True)
        if line.startswith("intact") or other.startswith("intact")
    ]
    assert lines[0] == of_page[0]
    assert passed[:1] == [f"nothing: {lines[0]} / {lines[0]}"]
    return passed[1:]


def main(*files: str) -> int:
    """Put 1,000 mutations of these certificates to both programs."""
    rng, total, passed = random.Random(36), 0, list[str]()
    with tempfile.TemporaryDirectory() as folder:
        for place, file in enumerate(files):
            count = 1000 // len(files) + (place < 1000 % len(files))
            text = Path(file).read_text("ascii")
            passed += survivors(Path(folder), text, count, rng)
            total += count
    print(f"{total} mutations of {len(files)} certificates: {len(passed)} passed")
    print(*passed, sep="\n")
    return int(bool(passed))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
