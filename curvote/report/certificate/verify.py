"""Check a certificate of what was released about people, without who wrote it.

    python verify.py certificate.json [--signer FINGERPRINT]

Exit 0 where all holds, 1 and the reason otherwise. It fetches nothing and imports
nothing of whoever wrote the certificate: Python and ``cryptography`` are all. The
format is docs/certificate.md of curvote; powers of e are compared in whole numbers.
"""

import argparse
import hashlib
import json
import math
import re
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, NoReturn

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

PREFIX: Final = b"curvote certificate\n"  # no text of another purpose begins so
_TEXT: Final = (
    r'"[ !#-\[\]-~]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[ !#-\[\]-~]*)*"'
    r"|-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,40})?(?:[eE](?:-[0-9]{1,3}|\+?[0-9]{1,2}))?"
)
_TOKEN: Final = re.compile(rf"({_TEXT}|true|false|null)|[{{}}\[\],:]|([ \t\n\r]+)")
_START: Final = '{"certificate":'
_END: Final = re.compile(r',"key":"([0-9a-f]{64})","signature":"([0-9a-f]{128})"}\Z')
_WORD: Final = re.compile(r"(?s).+\Z")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}\Z")
_RATIO: Final = re.compile(r"(0|[1-9][0-9]{0,3999})(/[1-9][0-9]{0,3999})?\Z")


class RefusedError(Exception):
    """Reason for which a certificate does not hold."""


def refuse(why: str) -> NoReturn:
    """Refuse the certificate."""
    raise RefusedError(why)


def need(holds: bool, why: str) -> None:
    """Refuse unless something holds."""
    if not holds:
        refuse(why)


def read_json(text: str) -> tuple[Any, str]:
    """Return a JSON value, and its text without white space between tokens."""
    tokens: list[str] = []
    keys: list[set[str] | None] = []  # of each open object; None: of a list
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            refuse(f"character {at + 1} is none that may stand there")
        at, token = match.end(), match.group()
        if match[2]:
            continue
        if token in "{[":
            keys.append(set() if token == "{" else None)
            need(len(keys) <= 32, "values are nested too deep")
        elif token in "}]" and keys:
            keys.pop()
        elif token == ":" and keys and keys[-1] is not None:
            name = json.loads(tokens[-1]) if tokens[-1][0] == '"' else ""
            need(name not in keys[-1], f"key {tokens[-1][:40]} stands twice")
            keys[-1].add(name)
        tokens.append(token)
    try:
        return json.loads(text), "".join(tokens)
    except ValueError:
        refuse("it is no whole JSON text")


def open_certificate(data: bytes) -> tuple[Any, str]:
    """Return what was signed, and the fingerprint of who signed it."""
    need(len(data) <= 1 << 26 and data.isascii(), "it is too large, or not ASCII")
    _, plain = read_json(data.decode("ascii"))
    end = _END.search(plain)
    if end is None or not plain.startswith(_START):
        refuse("it is no object of certificate, key and signature")
    body, public = plain[len(_START) : end.start()], bytes.fromhex(end[1])
    try:
        key = Ed25519PublicKey.from_public_bytes(public)
        key.verify(bytes.fromhex(end[2]), PREFIX + body.encode("ascii"))
    except (InvalidSignature, ValueError):
        refuse("the signature is wrong: something was altered")
    return read_json(body)[0], hashlib.sha256(public).hexdigest()


def keyed(value: Any, names: str, where: str) -> list[Any]:
    """Return the values of an object that has exactly these keys, in their order."""
    same = isinstance(value, dict) and sorted(value) == sorted(names.split())
    need(same, f"{where} is no object of {', '.join(names.split())}")
    return [value[name] for name in names.split()]


def items(value: Any, where: str) -> list[Any]:
    """Return a list."""
    need(isinstance(value, list), f"{where} is no list")
    return list(value)


def word(value: Any, where: str, form: re.Pattern[str] = _WORD) -> str:
    """Return a text that is not empty, or one of another form."""
    need(isinstance(value, str) and bool(form.match(value)), f"{where} is no such text")
    return str(value)


def ratios(where: str, *values: Any) -> list[Fraction]:
    """Return the fractions that "3/4", "2" or a whole number state exactly."""
    texts = (str(v) if type(v) is int and v < 1 << 53 else v for v in values)
    pairs = (word(text, where, _RATIO).partition("/") for text in texts)
    return [Fraction(int(above), int(below or 1)) for above, _, below in pairs]


def count(value: Any, where: str, least: int = 0) -> int:
    """Return a whole number."""
    (number,) = ratios(where, value)
    need(number.denominator == 1 and number >= least, f"{where} is below {least}")
    return int(number)


def exp_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Return integers with low <= 2^bits e^x <= high, for x from 0 to 1,000."""
    n, d, k = x.numerator, x.denominator, 0
    spare = 64 + 2 * (n // d + 1)  # each term is off by less than e^x units
    term = total = 1 << (bits + spare)
    while term or k * d < 2 * n:
        k += 1
        term = term * n // (d * k)
        total += term
    near = total >> spare
    return (near - 1, near + 2) if n else (near, near)


def check_power(odds: Fraction, least: Fraction, where: str) -> None:
    """Refuse unless ``least`` is ln(odds), or above it by 10^-12 at most."""
    odds = max(odds, 1 / odds)
    bits = 192 + odds.denominator.bit_length()
    scaled, below = odds.numerator << bits, least - Fraction(1, 10**12)
    low = exp_bounds(least, bits)[0] * odds.denominator
    need(scaled <= low, f"{where} loses more than is stated")
    high = exp_bounds(max(below, Fraction(0)), bits)[1] * odds.denominator
    need(below <= 0 or high < scaled, f"{where} loses less than is stated")


def law_odds(kind: Any, law: Any, where: str) -> Fraction:
    """Return the largest odds of one outcome between two inputs."""
    if kind == "channel":  # a row is an input, and adds up to ``of``
        of, rows = keyed(law, "of rows", where)
        table = [[count(n, where) for n in items(r, where)] for r in items(rows, where)]
        full = {*map(sum, table)} == {count(of, where, 1)}
        need(full and len({*map(len, table)}) == 1, f"{where}: a row does not add up")
        columns = [sorted(c) for c in zip(*table, strict=True) if any(c)]
        need(all(c[0] for c in columns), f"{where}: an outcome tells an input")
        return max(Fraction(c[-1], c[0]) for c in columns)
    if kind == "unary":  # by the two bits that tell two classes apart
        p, near = ratios(where, *keyed(law, "p q", where))
        far = 1 - near
    else:  # the kept side has so many outcomes ``near``, each as likely
        sided = kind in ("binary", "k_rr", "subset", "hadamard", "window")
        need(sided, f"{where} is no known law")
        p, near, far = ratios(where, *keyed(law, "keep near far", where))
    need(0 < p < 1 and min(near, far) > 0, f"{where} is out of range")
    return p * far / ((1 - p) * near)


def check_direction(law: Any, least: Fraction, where: str) -> None:
    """Check PrivUnit: ``margin`` is what floating-point candidates may add to it."""
    wide, many, *numbers = keyed(law, "d spheres epsilon share accept margin", where)
    d, spheres = count(wide, where, 2), count(many, where, 1)
    epsilon, share, accept, margin = ratios(where, *numbers)
    fits = min(epsilon, share) >= 2.0**-40 and share <= 1 and 0 < accept < 1
    fits = fits and 0 < margin <= least <= epsilon and max(d, spheres) <= 1 << 20
    need(fits, f"{where} is out of range")
    gain = -math.expm1(-float(epsilon))
    expected = 4 * d * 2.0**-42 / spheres * gain / (1 - (1 - float(share)) * gain)
    need(abs(float(margin) / expected - 1) <= 1e-6, f"{where} has another margin")
    check_power(1 / accept, least - margin, where)


PLACES, FAR = 3072, 45 << 3072  # binary places; where a normal tail is below 10^-440


def normal_series(z: int) -> int:
    """Return (Phi(z) - 1/2) sqrt(2 pi), all in fixed point, for |z| <= 45."""
    square, term, total, k = z * z >> PLACES, abs(z), abs(z), 0
    while term:
        k += 1
        term = (term * square >> PLACES) // (2 * k)
        total += -(term // (2 * k + 1)) if k % 2 else term // (2 * k + 1)
    return total if z > 0 else -total


def gaussian_delta(distance: Fraction, rate: Fraction, epsilon: Fraction) -> Fraction:
    """Return delta of P(k) ~ exp(-rate k^2), that of noise of a variance less by 16."""
    square = distance**2 / (1 / (2 * rate) - 16)
    apart = math.isqrt((square.numerator << 2 * PLACES) // square.denominator)
    middle = (epsilon.numerator << 2 * PLACES) // (epsilon.denominator * max(apart, 1))
    low, high = middle - apart // 2, middle + apart // 2
    need(max(abs(low), high) * 9 <= FAR * 8, "gaussian is out of range")
    power, half = exp_bounds(epsilon, PLACES)[0], normal_series(FAR)
    tails = [half - normal_series(z) for z in (low, high)]
    return Fraction(tails[0] - (power * tails[1] >> PLACES), 2 * half)


def check_gaussian(law: Any, least: Fraction, where: str) -> Fraction:
    """Check Gaussian noise at its delta, and return that."""
    far, rate, delta = ratios(where, *keyed(law, "distance rate delta", where))
    fits = far > 0 and 0 < rate < Fraction(1, 32)
    need(fits and Fraction(1, 10**60) <= delta < 1, f"{where} is out of range")
    holds, below = gaussian_delta(far, rate, least) <= delta, least - Fraction(1, 10**6)
    need(holds, f"{where} loses more than is stated")
    tight = below <= 0 or gaussian_delta(far, rate, below) > delta
    need(tight, f"{where} loses less than is stated")
    return delta


def check_part(part: Any, where: str) -> tuple[Fraction, Fraction]:
    """Return what the draws of one law lose together, (epsilon, delta)."""
    fixed = {"kind", "times", "least"}
    need(isinstance(part, dict) and fixed <= part.keys(), f"{where} lacks a key")
    law, kind = {k: v for k, v in part.items() if k not in fixed}, part["kind"]
    times, (least,) = count(part["times"], where, 1), ratios(where, part["least"])
    need(times <= 1 << 20 and least <= 1_000, f"{where} is out of range")
    delta = Fraction(0)
    if kind == "discrete_laplace":
        rate, distance = ratios(where, *keyed(law, "rate distance", where))
        need(least == rate * distance, f"{where}: least is not rate times distance")
    elif kind == "privunit":
        check_direction(law, least, where)
    elif kind == "gaussian":
        delta = check_gaussian(law, least, where)
    elif kind == "chosen":  # by a coin that no record touches
        laws = items(keyed(law, "laws", where)[0], where)
        plain = all(isinstance(p, dict) and p.get("kind") != kind for p in laws)
        need(bool(laws) and plain, f"{where} chooses among no laws")
        losses = [*zip(*(check_part(p, where) for p in laws), strict=True)]
        need(least == max(losses[0]), f"{where}: least is not the largest")
        delta = max(losses[1])
    else:
        check_power(law_odds(kind, law, where), least, where)
    return times * least, times * delta


def check_tree(value: Any, where: str) -> Any:
    """Return how many leaves a tree has; None: there is none, and it says why."""
    root, size, why, leaves = keyed(value, "root count why leaves", where)
    if root is None:
        need(size is None and leaves is None, f"{where} has leaves, but no root")
        return word(why, f"why {where} has no root") and None
    number = count(size, where)
    word(root, where, _DIGEST)
    need(why is None, f"{where} says why there is no root")
    if leaves is not None:
        texts = [word(leaf, where, _DIGEST) for leaf in items(leaves, where)]
        need(texts == sorted({*texts}), f"{where}: leaves are not sorted, or double")
        level = [hashlib.sha256(b"\0" + bytes.fromhex(x)).digest() for x in texts]
        while len(level) > 1:  # an odd last node is carried up as it is
            pairs = [*zip(level[::2], level[1::2], strict=False)]
            rest = level[2 * len(pairs) :]
            level = [hashlib.sha256(b"\1" + a + b).digest() for a, b in pairs] + rest
        top = level[0] if level else hashlib.sha256(b"").digest()
        need([len(texts), top.hex()] == [number, root], f"{where}: the root is another")
    return number


Checked = tuple[tuple[Fraction, Fraction], int, set[str]]


def check_message(value: Any, model: str) -> Checked:
    """Return what a message costs each record, how many there are, and its laws."""
    names = "name task law sent records envelopes epsilon delta least"
    name, task, law, came, about, tree, *numbers = keyed(value, names, "a message")
    where = word(name, "a message's name")[:60]
    named, text = keyed(task, "digest text", f"{where}: task")
    need(word(text, where).isascii(), f"{where}: the task is not ASCII")
    same = hashlib.sha256(text.encode()).hexdigest() == named
    need(same, f"{where}: the task's digest is another")
    document, (epsilon, delta, least) = read_json(text)[0], ratios(where, *numbers)
    price: Any = document.get("epsilon") if isinstance(document, dict) else None
    other = type(price) in {int, float} and Fraction(price) != epsilon
    need(not other, f"{where}: the task asks for another epsilon")
    need(least <= epsilon <= 1_000 and epsilon > 0, f"{where} loses more than epsilon")
    losses = [check_part(p, f"{where}: a law") for p in items(law, where)]
    sums = [sum(parts, Fraction(0)) for parts in zip(*losses, strict=True)]
    need(sums == [least, delta], f"{where}: least or delta is no sum of its laws")
    came, about = count(came, where), count(about, where)
    leaves = check_tree(tree, f"{where}: envelopes")
    fits = came == about if model == "local" else came <= about
    need(fits and leaves in {None, came}, f"{where}: sent, records, envelopes differ")
    need(model != "nobody" or not about, f"{where}: a study counts nobody")
    return (epsilon, delta), about, {part["kind"] for part in law}


def check_people(value: Any, messages: list[Checked]) -> list[Any]:
    """Return the largest (epsilon, delta) of a person, from who sent what."""
    names = "cap linked groups spent total"
    cap, linked, groups, spent, total = keyed(value, names, "people")
    costs, people, mean = [cost for cost, *_ in messages], 0, Fraction(0)
    records, largest = [0] * len(costs), [Fraction(0)] * 2
    for group in items(groups, "groups"):
        size, sends = keyed(group, "people sends", "a group")
        n, times = count(size, "people"), [count(t, "sends") for t in items(sends, "")]
        fits = len(times) == len(costs) and max(times) <= 1 << 20
        need(fits, "a group does not count each message")
        pairs = [*zip(times, costs, strict=True)]
        loss = [sum((t * cost[i] for t, cost in pairs), Fraction(0)) for i in (0, 1)]
        records = [r + n * t for r, t in zip(records, times, strict=True)]
        people, mean = people + n, mean + n * loss[0]
        largest = [*map(max, largest, loss)]
    need(isinstance(linked, bool), "linked is neither true nor false")
    if not linked:  # nobody knows whether one person sent all
        largest = [sum(losses, Fraction(0)) for losses in zip(*costs, strict=True)]
    need(records == [n for _, n, _ in messages], "groups and records differ")
    size, *sums = keyed(spent, "people mean largest delta", "spent")
    mean /= max(people, 1)
    same = [count(size, "spent"), *ratios("spent", *sums)] == [people, mean, *largest]
    need(same, "spent is another sum")
    top = spent if total is None else keyed(total, "epsilon delta", "total")
    highest = largest if top is spent else ratios("total", *top)
    need(all(map(Fraction.__ge__, highest, largest)), "total is less than was spent")
    if cap is not None:  # with room for parts of it that floating point divided
        most = ratios("cap", *keyed(cap, "epsilon delta", "cap"))
        most = [
            most[0] + Fraction(1, 10**10),
            most[1] + Fraction(bool(most[1]), 10**18),
        ]
        need(all(map(Fraction.__ge__, most, highest)), "more was spent than the cap")
    return largest


def check(data: bytes, signer: str | None = None) -> list[str]:
    """Return what a certificate shows, a line each; refuse one that does not hold."""
    certificate, fingerprint = open_certificate(data)
    need(signer in {None, fingerprint}, f"it is signed by another: {fingerprint}")
    names = "format kind about report protects messages people ledger digests"
    names += " not_private sp800_226 registry"
    version, kind, _, _, *rest = keyed(certificate, names, "the certificate")
    protects, listed, people, ledger, digests, public, guide, registry = rest
    need(type(version) is int and version == 1, "its format is none that is known")
    words = keyed(protects, "unit adjacency model senders", "protects")
    unit, adjacency, model, _ = (word(text, "protects") for text in words)
    study = kind == "study"
    fits = model == "nobody" if study else model in {"local", "central"}
    need(fits and study == (people is None), "a study protects nobody, a release does")
    need(study or kind == "release", "it is neither a study nor a release")
    messages = [check_message(item, model) for item in items(listed, "messages")]
    need(bool(messages), "it is about no message")
    check_tree(ledger, "ledger")
    need(all(word(t, "not_private") for t in items(public, "not_private")), "")
    need(isinstance(digests, dict), "digests is no object")
    need(all(d is None or word(d, "a digest", _DIGEST) for d in digests.values()), "")
    spent = [None, None] if study else check_people(people, messages)
    try:
        loss = registry["deployment"]["privacy_loss"]["privacy_parameters"]
        claims = [(guide[name], loss[name]) for name in ("epsilon", "delta")]
    except (TypeError, KeyError):
        refuse("sp800_226 or registry lacks epsilon or delta")
    for (text, number), exact in zip(claims, spent, strict=True):
        same = text is None and number is None
        if exact is not None:
            plain = type(number) in {int, float} and ratios("sp800_226", text) == [
                exact
            ]
            same = plain and abs(Fraction(number) - exact) * 10**12 <= exact
        need(same, "sp800_226 or registry states another epsilon or delta")
    laws = sorted(set[str]().union(*(kinds for *_, kinds in messages)))
    facts = {"unit_of_privacy": unit, "adjacency": adjacency, "trust_model": model}
    same = guide == guide | facts | {"mechanisms": laws}
    need(same, "sp800_226 says something else than the rest")
    spent_text = "epsilon {:g}, delta {:g}".format(*map(float, spent)) if people else ""
    most = f"at most {spent_text} of each {unit}" if people else "it protects nobody"
    signed = f"signer {'as expected' if signer else 'unchecked'}: {fingerprint}"
    return [f"intact, {signed}", f"{kind}: {most}"]


def main() -> int:
    """Check the file that is named; return the exit code."""
    parser = argparse.ArgumentParser(description="Check a certificate.")
    parser.add_argument("certificate", type=Path)
    parser.add_argument("--signer", help="fingerprint of the key that must have signed")
    options = parser.parse_args()
    try:
        lines = check(options.certificate.read_bytes(), options.signer)
    except (RefusedError, OSError) as error:
        lines = [f"refused: {error}"]
    for line in lines:  # nobody's text may look like a line of this program
        print(re.sub("[^ -~]", "?", line))
    return int(lines[0].startswith("refused"))


if __name__ == "__main__":
    sys.exit(main())
