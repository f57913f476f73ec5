"""Certificates of other systems, written from docs/certificate.md alone.

Nothing of curvote is imported: laws, sums, digests, trees and the signature are made
here as the page says it.
"""

import hashlib
import json
import re
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from math import exp, expm1
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PAGE = Path(__file__).parents[2] / "docs/certificate.md"


def from_page() -> dict[str, Any]:
    """Return the certificate that stands on the page."""
    (text,) = re.findall("```json\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return dict(json.loads(text))


def signed(certificate: dict[str, Any], key: Ed25519PrivateKey) -> str:
    """Return a certificate's file, its members behind one another without space."""
    plain = json.dumps(certificate, separators=(",", ":"))
    signature = key.sign(b"curvote certificate\n" + plain.encode()).hex()
    public = key.public_key().public_bytes_raw().hex()
    return f'{{"certificate":{plain},"key":"{public}","signature":"{signature}"}}'


def least(odds: Fraction) -> str:
    """Return ln of odds above 1, rounded up to 20 places."""
    with localcontext() as context:
        context.prec = 60
        ln = (Decimal(odds.numerator) / Decimal(odds.denominator)).ln()
        up = ln.quantize(Decimal("1e-20"), rounding=ROUND_CEILING)
    return str(Fraction(up))


def law(kind: str, odds: Fraction, times: int = 1, **more: Any) -> dict[str, Any]:
    """Return a law with so large odds."""
    return {"kind": kind, "times": times, "least": least(odds), **more}


NO_TREE = {"root": None, "count": None, "why": "nobody kept one", "leaves": None}


def tree(n: int) -> dict[str, Any]:
    """Return a tree of n leaves, all of them listed."""
    leaves = sorted(hashlib.sha256(b"salt %d" % i).digest() for i in range(n))
    row = [hashlib.sha256(b"\0" + leaf).digest() for leaf in leaves]
    while len(row) > 1:
        last = [row.pop()] if len(row) % 2 else []
        pairs = [row[i] + row[i + 1] for i in range(0, len(row), 2)]
        row = [hashlib.sha256(b"\1" + pair).digest() for pair in pairs] + last
    root = row[0] if row else hashlib.sha256(b"").digest()
    listed = [leaf.hex() for leaf in leaves]
    return {"root": root.hex(), "count": n, "why": None, "leaves": listed}


def message(laws: list[Any], epsilon: str, sent: int, **more: Any) -> dict[str, Any]:
    """Return a message with these laws."""
    text = json.dumps({"asks": [one["kind"] for one in laws], **more.pop("asked", {})})
    total = sum(one["times"] * Fraction(one["least"]) for one in laws)
    return {
        "name": laws[0]["kind"],
        "task": {"text": text, "digest": hashlib.sha256(text.encode()).hexdigest()},
        "law": laws,
        "epsilon": epsilon,
        "delta": "0",
        "least": str(total),
        "sent": sent,
        "records": sent,
        "envelopes": NO_TREE,
    } | more


def certificate(messages: list[Any], people: dict[str, Any], **more: Any) -> Any:
    """Return the certificate of a release."""
    protects = {"unit": "person", "adjacency": "replace-one", "model": "local"}
    protects |= {"senders": "whoever installed it"} | more.pop("protects", {})
    spent = people["spent"]
    numbers = {"epsilon": spent["largest"], "delta": spent["delta"]}
    floats = {name: float(Fraction(text)) for name, text in numbers.items()}
    return {
        "format": 1,
        "kind": "release",
        "about": {"by": "hand"},
        "protects": protects,
        "messages": messages,
        "people": people,
        "ledger": tree(5),
        "report": [1.5, "numbers", None],
        "digests": {"code": hashlib.sha256(b"code").hexdigest(), "model": None},
        "not_private": ["that it was installed"],
        "sp800_226": {
            **numbers,
            "unit_of_privacy": protects["unit"],
            "adjacency": protects["adjacency"],
            "trust_model": protects["model"],
            "mechanisms": sorted({one["kind"] for m in messages for one in m["law"]}),
        },
        "registry": {"deployment": {"privacy_loss": {"privacy_parameters": floats}}},
    } | more


def local() -> Any:
    """Return that of two questions to people, by nearly every law there is."""
    p, q, keep = Fraction(3, 4), Fraction(1, 4), Fraction(2, 3)
    sided = {"keep": "2/3", "near": 2}
    chosen = [law("binary", Fraction(3), keep="3/4", near=1, far=1)]
    chosen += [law("window", keep * 7 / ((1 - keep) * 2), **sided, far=7)]
    first = [
        law("unary", p * (1 - q) / (q * (1 - p)), p="3/4", q="1/4"),
        law("k_rr", Fraction(2) * 9, keep="2/3", near=1, far=9, times=2),
        law("subset", keep * 6 / ((1 - keep) * 2), **sided, far=6),
        law("hadamard", keep * 6 / ((1 - keep) * 2), **sided, far="6"),
        law("channel", Fraction(4), of=10, rows=[[8, 2, 0], [2, 8, 0], [5, 5, 0]]),
        {"kind": "chosen", "times": 1, "least": chosen[1]["least"], "laws": chosen},
    ]
    rate = {"rate": "1/1048576", "distance": 2097152}
    second = [{"kind": "discrete_laplace", "times": 3, "least": "2", **rate}]
    messages = [
        message(first, "15", 7, envelopes=tree(7), asked={"epsilon": 15.0}),
        message(second, "6", 4),
    ]
    groups = [{"people": 5, "sends": [1, 0]}, {"people": 2, "sends": [1, 2]}]
    spent = {"people": 7, "largest": "27", "delta": "0"}
    spent["mean"] = str(Fraction(7 * 15 + 4 * 6, 7))
    people = {"linked": True, "groups": groups, "spent": spent}
    cap = {"epsilon": "28", "delta": "0"}
    return certificate(messages, people | {"total": cap, "cap": cap})


def central() -> Any:
    """Return that of two servers: one object by Gaussian noise, a direction of each."""
    noise = {"distance": "1000000", "rate": "1/8000000000000", "delta": "1/1000000"}
    # Found by halving; the page's inequality says whether it is right.
    gauss = {"kind": "gaussian", "times": 1, "least": "22540848/10000000", **noise}
    d, epsilon, share = 10, 2.0, 0.25
    gain = -expm1(-epsilon)
    margin = Fraction(4 * d * 2.0**-42 * gain / (1 - (1 - share) * gain))
    accept = Fraction(exp(-epsilon)).limit_denominator(1 << 32) + Fraction(1, 1 << 32)
    numbers = {"epsilon": "2", "share": "1/4", "accept": str(accept)}
    unit = law("privunit", 1 / accept, d=d, spheres=1, **numbers, margin=str(margin))
    unit["least"] = str(Fraction(unit["least"]) + margin)
    messages = [
        message([gauss], "5/2", 1, records=300, delta="1/1000000"),
        message([unit], "2", 2, records=50),
    ]
    groups = [{"people": 300, "sends": [1, 0]}, {"people": 50, "sends": [0, 1]}]
    spent = {"people": 350, "largest": "9/2", "delta": "1/1000000"}
    spent["mean"] = str((300 * Fraction(5, 2) + 50 * 2) / 350)
    people = {"linked": False, "groups": groups, "spent": spent}
    how = {"model": "central", "unit": "patient"}
    return certificate(messages, people | {"total": None, "cap": None}, protects=how)


def study() -> Any:
    """Return that of a study."""
    laws = [law("binary", Fraction(3), keep="3/4", near=1, far=1)]
    spent = {"spent": {"largest": "0", "delta": "0"}}
    found = certificate([message(laws, "2", 0)], spent, protects={"model": "nobody"})
    nothing = {"epsilon": None, "delta": None}
    found |= {"kind": "study", "people": None}
    found["sp800_226"] |= nothing
    found["registry"]["deployment"]["privacy_loss"]["privacy_parameters"] = nothing
    return found


ALL = (from_page, local, central, study)
