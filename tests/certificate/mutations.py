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

TOKEN: Final = re.compile(
    r'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|[{}\[\],:]'
)
Change = Callable[[random.Random, str], str]


def _some(rng: random.Random, text: str, what: str = ".") -> re.Match[str]:
    return rng.choice([m for m in TOKEN.finditer(text) if re.match(what, m.group())])


def _put(text: str, at: re.Match[str], new: str) -> str:
    return text[: at.start()] + new + text[at.end() :]


def digit(rng: random.Random, text: str) -> str:
    """Change one digit anywhere."""
    places = [m.start() for m in re.finditer(r"\d", text)]
    at = rng.choice(places)
    new = rng.choice([d for d in "0123456789" if d != text[at]])
    return text[:at] + new + text[at + 1 :]


def byte(rng: random.Random, text: str) -> str:
    """Put any byte in another's place, but white space between tokens."""
    at = rng.randrange(len(text))
    new = chr(rng.randrange(256))
    changed = text[:at] + new + text[at + 1 :]
    return changed if _plain(changed) != _plain(text) else digit(rng, text)


def number(rng: random.Random, text: str) -> str:
    """Move a number by one."""
    at = _some(rng, text, r"-?\d|\"\d")
    moved = lambda m: str(int(m.group()) + rng.choice([-1, 1]))  # noqa: E731
    return _put(text, at, re.sub(r"\d+", moved, at.group(), count=1))


def removed(rng: random.Random, text: str) -> str:
    """Leave a token out."""
    return _put(text, _some(rng, text), "")


def doubled(rng: random.Random, text: str) -> str:
    """Write a token twice, or a whole member."""
    at = _some(rng, text)
    if rng.random() < 0.5:
        key = _some(rng, text, r'"format"|"kind"|"epsilon"|"sent"|"root"')
        member = re.match(r'"\w+":\s*(?:"[^"]*"|\d+|null)', text[key.start() :])
        if member:
            return text[: key.start()] + member.group() + "," + text[key.start() :]
    return _put(text, at, at.group() * 2)


def swapped(rng: random.Random, text: str) -> str:
    """Exchange two tokens that differ."""
    first = _some(rng, text, r'["\d]')
    second = _some(rng, text, r'["\d]')
    while first.group() == second.group() or first.start() == second.start():
        second = _some(rng, text, r'["\d]')
    low, high = sorted([first, second], key=lambda m: m.start())
    return _put(_put(text, high, low.group()), low, high.group())


def cut(rng: random.Random, text: str) -> str:
    """End somewhere before the end."""
    return text.rstrip()[: rng.randrange(len(text.rstrip()))]


def space(rng: random.Random, text: str) -> str:
    """Put white space into a text, or into a number."""
    at = _some(rng, text, r'"[^"]|\d\d')
    place = rng.randrange(1, len(at.group()))
    new = at.group()[:place] + rng.choice([" ", "\n", "\t"]) + at.group()[place:]
    return _put(text, at, new)


def escape(rng: random.Random, text: str) -> str:
    """Write a character of a text in another way."""
    at = _some(rng, text, r'"[a-z]')
    new = f'"\\u{ord(at.group()[1]):04x}{at.group()[2:]}'
    return _put(text, at, new)


def added(rng: random.Random, text: str) -> str:
    """Put something behind the end, or in front."""
    more = rng.choice(["{}", "0", "\ufeff".encode().decode("latin1"), "\0", ","])
    return text + more if rng.random() < 0.5 else more + text


CHANGES: Final[tuple[Change, ...]] = (
    *(digit, byte, number, removed, doubled, swapped),
    *(cut, space, escape, added),
)


def _plain(text: str) -> list[str]:
    """Return the tokens of a text, and what is between them but white space."""
    return [*TOKEN.findall(text), re.sub(r"\s", "", TOKEN.sub("", text))]


Lie = tuple[str, Callable[[dict[str, Any]], Any]]


def _times(value: Any, factor: Fraction) -> str:
    return str(Fraction(value) * factor)


def lies(certificate: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield certificates that say what cannot be, each with a name.

    The same key signs them: only what is computed anew can find them out.
    """

    def told(name: str, path: str, change: Callable[[Any], Any]) -> tuple[str, Any]:
        changed = deepcopy(certificate)
        at: Any = changed
        *outer, last = [int(p) if p.isdecimal() else p for p in path.split(".")]
        for step in outer:
            at = at[step]
        at[last] = change(at[last])
        assert changed != certificate, name
        return name, changed

    less, more = Fraction(999_999, 10**6), Fraction(1_000_001, 10**6)
    for i, message in enumerate(certificate["messages"]):
        at = f"messages.{i}"
        yield told(
            "epsilon below least",
            f"{at}.epsilon",
            lambda _, m=message: _times(m["least"], less),
        )
        yield told(
            "another delta",
            f"{at}.delta",
            lambda v: str(Fraction(v) + Fraction(1, 10**9)),
        )
        yield told("another digest", f"{at}.task.digest", lambda v: v[::-1])
        yield told("another task", f"{at}.task.text", lambda v: v.replace(":", ": ", 1))
        yield told("no law", f"{at}.law", lambda _: [])
        yield told("law left out", f"{at}.law", lambda v: v[1:])
        yield told("law twice", f"{at}.law", lambda v: [*v, v[0]])
        if (
            certificate["protects"]["model"] != "central"
        ):  # there nothing contradicts it
            yield told("one more sent", f"{at}.sent", lambda v: v + 1)
        yield told("one more record", f"{at}.records", lambda v: v + 1)
        yield told(
            "a root of none", f"{at}.envelopes.root", lambda v: None if v else "0" * 64
        )
        yield told("a further key", at, lambda v: {**v, "more": 1})
        yield told("a key less", at, lambda v: {k: v[k] for k in v if k != "least"})
        for j, law in enumerate(message["law"]):
            to = f"{at}.law.{j}"
            yield told("least too small", f"{to}.least", lambda v: _times(v, less))
            yield told("least too large", f"{to}.least", lambda v: _times(v, more))
            yield told("drawn once more", f"{to}.times", lambda v: v + 1)
            yield told("another kind", f"{to}.kind", lambda _: "laplace")
            if "keep" in law:
                half = lambda v: str((Fraction(v) + 1) / 2)  # noqa: E731
                yield told("kept more often", f"{to}.keep", half)
                yield told("more outcomes", f"{to}.far", lambda v: str(int(v) + 1))
            for name in {"rate", "distance", "margin", "accept", "p"} & law.keys():
                yield told(f"another {name}", f"{to}.{name}", lambda v: _times(v, less))
    yield told("another format", "format", lambda _: 2)
    yield told("another unit", "protects.unit", lambda v: f"{v}s")
    yield told("another adjacency", "protects.adjacency", lambda v: f"{v}s")
    other = {"study": "release", "release": "study"}
    yield told("another kind", "kind", other.__getitem__)
    models = {"local": "nobody", "central": "nobody", "nobody": "local"}
    yield told("another model", "protects.model", models.__getitem__)
    yield told(
        "epsilon of the guidelines",
        "sp800_226.epsilon",
        lambda v: "1" if v is None else _times(v, less),
    )
    place = "registry.deployment.privacy_loss.privacy_parameters.epsilon"
    yield told(
        "epsilon of the registry", place, lambda v: 1 if v is None else v * 0.999
    )
    yield told("laws of the guidelines", "sp800_226.mechanisms", lambda v: [*v, "none"])
    yield told("a root that is none", "ledger.root", lambda v: "0" if v else "0" * 64)
    yield told("nothing public", "not_private", lambda v: [*v, 3])
    people = certificate["people"]
    if people is None:
        yield told("who spent in a study", "people", lambda _: {})
        return
    for name in ("mean", "largest"):
        yield told(f"another {name}", f"people.spent.{name}", lambda v: _times(v, less))
    yield told("one person more", "people.groups.0.people", lambda v: v + 1)
    yield told("one message more", "people.groups.0.sends.0", lambda v: v + 1)
    yield told("one spender more", "people.spent.people", lambda v: v + 1)
    yield told("linked or not", "people.linked", lambda _: None)
    below = {"epsilon": _times(people["spent"]["largest"], less), "delta": "0"}
    yield told("a cap below", "people.cap", lambda _: below)
    yield told("a total below", "people.total", lambda _: below)


def mutations(
    text: str, count: int, signer: checkers.Signer, rng: random.Random
) -> Iterator[tuple[str, str]]:
    """Yield ``count`` mutations of a certificate, each with what was done.

    A third are lies by its own key (its copy's, signed anew by ``signer``), two are
    signed by a stranger, the rest are changes of the file.
    """
    certificate = json.loads(text)["certificate"]
    own = signer.text(certificate)
    every = list(lies(certificate))
    told = rng.sample(every, min(count // 3, len(every)))
    for name, lie in told:
        yield f"lie: {name}", signer.text(lie)
    strangers = max(1, count // 50)
    for k in range(strangers):
        yield "stranger", checkers.Signer(100 + k).text(certificate)
    for k in range(count - len(told) - strangers):
        change = CHANGES[k % len(CHANGES)]
        changed = change(rng, own)
        assert _plain(changed) != _plain(own), change.__name__
        yield change.__name__, changed


def surviving(
    folder: Path, text: str, count: int, signer: checkers.Signer, rng: random.Random
) -> list[str]:
    """Return the mutations that a program accepts or on which the two disagree."""
    names, texts = zip(*mutations(text, count, signer, rng), strict=True)
    first = checkers.by_python(texts, signer.fingerprint)
    second = checkers.by_page(folder, texts, signer.fingerprint)
    return [
        f"{name}: {one} / {other}"
        for name, one, other in zip(names, first, second, strict=True)
        if one.startswith("intact") or other.startswith("intact")
    ]


def main(*files: str) -> int:
    """Put 1,000 mutations of these certificates to both programs."""
    rng, signer, total, wrong = random.Random(36), checkers.Signer(), 0, list[str]()
    with tempfile.TemporaryDirectory() as folder:
        for place, file in enumerate(files):
            count = 1000 // len(files) + (place < 1000 % len(files))
            text = Path(file).read_text("ascii")
            own = signer.text(json.loads(text)["certificate"])
            for read in (
                checkers.by_python,
                lambda t, s: checkers.by_page(Path(folder), t, s),
            ):
                (line,) = read([own], signer.fingerprint)
                assert line.startswith("intact"), line
            wrong += surviving(Path(folder), text, count, signer, rng)
            total += count
    print(f"{total} mutations of {len(files)} certificates: {len(wrong)} passed")
    print(*wrong, sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
