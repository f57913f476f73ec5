"""`curvote advise --server`: what each source adds, and from which epsilon on."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from curvote.base.errors import UserError
from curvote.cli.app import app
from curvote.systems.transfer.method.advice import (
    NOTICEABLE_FALL,
    Advice,
    Server,
    advise,
)
from tests.transfer.hospitals import radius

TARGET = Server("hungarian", 142, 1.0)


def one(source: Server, target: Server = TARGET, **given: Any) -> Advice:
    """What a single source adds."""
    return advise([target, source], **{"d": 7} | given)


def test_r_is_that_of_the_equation() -> None:
    """Alone, with each and with all; the right-hand side is the same for all."""
    sources = [Server("cleveland", 303, 0.2), Server("va", 141, 2.0, 0.9, 1e-9)]
    found = advise([TARGET, *sources], d=7, beta=0.8)
    smallest = 1e-9
    assert found.alone.r == radius(142, 1, 1, 0.8, 7, delta=smallest)
    given = {"beta": 0.8, "d": 7, "delta": smallest}
    for offer, gamma in zip(found.offers, (1, 0.9), strict=True):
        pair = (142, offer.server.n), (1, offer.server.epsilon), gamma
        assert offer.gain.r == radius(*pair, **given)
        assert offer.gain.risk == pytest.approx(
            (offer.gain.r / found.alone.r) ** (0.8 * 2)
        )
    sizes, budgets = (142, 303, 141), (1, 0.2, 2)
    together = radius(sizes, budgets, (1, 1, 0.9), **given)
    assert found.together.r == together


@given(
    n0=st.integers(2, 10**6),
    n=st.integers(2, 10**6),
    epsilon=st.floats(1e-3, 10) | st.just(math.inf),
    gamma=st.floats(0.3, 3),
    d=st.integers(1, 12),
    beta=st.floats(0.1, 1),
)
@settings(deadline=None, max_examples=60)
def test_the_least_epsilon_is_where_something_is_noticed(
    n0: int, n: int, epsilon: float, gamma: float, d: int, beta: float
) -> None:
    """Just above it r has fallen by 1 %, just below by less; or never does."""
    target = Server("t", n0, epsilon, delta=1e-7)

    def fall(budget: float) -> float:
        source = Server("s", n, budget, gamma, 1e-7)
        found = advise([target, source], d, beta)
        return 1 - found.offers[0].gain.r / found.alone.r

    (offer,) = advise([target, Server("s", n, 1.0, gamma, 1e-7)], d, beta).offers
    if offer.least_epsilon is None:
        assert fall(1e6) < NOTICEABLE_FALL + 1e-9
        return
    assert fall(offer.least_epsilon * 1.001) >= NOTICEABLE_FALL - 1e-9
    assert fall(offer.least_epsilon * 0.999) <= NOTICEABLE_FALL + 1e-9
    assert offer.noticed == (offer.least_epsilon <= 1)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, math.inf])
def test_records_of_its_own_would_do_the_same(epsilon: float) -> None:
    """A target of so many records, at its own epsilon, has that r by itself."""
    target = Server("t", 500, epsilon, delta=1e-7)
    found = one(Server("s", 800, 0.7, 1.2, 1e-7), target, d=2)
    assert found.alone.records == pytest.approx(500)
    many = found.offers[0].gain
    again = radius(many.records, epsilon, 1, 1, 2) if epsilon < 9 else None
    alone = Server("t", round(many.records), epsilon, delta=1e-7)
    other = one(Server("s", 800, 0.7, 1.2, 1e-7), alone, d=2)
    assert other.alone.r == pytest.approx(many.r, rel=1e-3)
    assert again is None or again < many.r  # (5) has no logarithm


def test_a_public_source_is_worth_most() -> None:
    """And one whose labels follow the target's less is worth less."""
    by = [one(Server("s", 300, epsilon)) for epsilon in (0.01, 0.1, 1.0, math.inf)]
    falling = [found.offers[0].gain.r for found in by]
    assert falling == sorted(falling, reverse=True)
    assert by[-1].offers[0].gain == by[-1].offers[0].if_public
    worse = one(Server("s", 300, 1.0, 3.0)).offers[0].gain
    assert worse.r > by[2].offers[0].gain.r


def test_who_adds_nothing_is_told_so() -> None:
    """Two records beside a million, at any epsilon."""
    crowd = Server("t", 10**6, 1.0)
    (offer,) = one(Server("s", 2, 1.0, delta=1e-3), crowd).offers
    assert offer.least_epsilon is None
    assert not offer.noticed


@pytest.mark.parametrize(
    ("servers", "said"),
    [
        ([TARGET], "at least one source"),
        ([TARGET, Server("a", 5, 1.0), Server("a", 6, 1.0)], "a stands 2 times"),
        ([TARGET, TARGET], "hungarian stands 2 times"),
    ],
)
def test_servers_have_names_of_their_own(servers: list[Server], said: str) -> None:
    """And there are two at least."""
    with pytest.raises(UserError, match=said):
        advise(servers, 7)


def command(*words: str) -> Result:
    """Run `curvote advise`, which has a form for clients as well."""
    return CliRunner().invoke(app, ["advise", *words])


ASKED = (
    *("--server", "hungarian:142:1"),
    *("--server", "cleveland:303:0.01"),
    *("--server", "va:141:2:0.9"),
    *("--server", "open:5000:public"),
)


def test_the_command_says_what_each_source_adds() -> None:
    """In words and as one JSON document, with the same numbers."""
    document = json.loads(command(*ASKED, "--json").stdout)
    text = command(*ASKED).stdout
    assert document["target"]["name"] == "hungarian"
    assert document["features"] == 7
    assert f"{document['alone']['r']:.4f}" in text
    names = [source["name"] for source in document["sources"]]
    assert names == ["cleveland", "va", "open"]
    for source in document["sources"]:
        assert f"{source['r']:.4f}" in text
        assert f"noticeable from epsilon {source['least_epsilon']:.3g} on" in text
        asking = f"{source['name']}: worth asking" in text
        assert asking == source["noticed"]
    assert "cleveland: adds nothing noticeable at epsilon 0.01" in text
    assert document["sources"][2]["epsilon"] is None
    assert document["sources"][0]["delta"] == pytest.approx(303**-2.0)


def test_features_smoothness_and_delta_may_be_stated() -> None:
    """They change r as the equation says."""
    given = ("--features", "2", "--beta", "0.5", "--delta", "4e-6", "--json")
    pair = ("--server", "t:500:1", "--server", "s:500:1")
    document = json.loads(command(*pair, *given).stdout)
    assert document["together"]["r"] == pytest.approx(0.2358687, abs=1e-6)


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("a", "write NAME:n:epsilon"),
        (":5:1", "write NAME:n:epsilon"),
        ("a:5:1:1:1", "write NAME:n:epsilon"),
        ("a:5.5:1", "n is a whole number"),
        ("a:5:much", "n is a whole number"),
        ("a:5:inf", "n is a whole number"),
        ("a:5:0", "epsilon is 0"),
        ("a:5:nan", "epsilon is nan"),
        ("a:1:1", "n is 1"),
        ("a:5:1:0", "gamma is 0"),
    ],
)
def test_a_server_that_makes_no_sense_is_shown(server: str, said: str) -> None:
    """Each message shows the text that was given, and what would be right."""
    refused = command("--server", "t:500:1", "--server", server).exception
    assert isinstance(refused, UserError)
    assert f"--server {server!r}" in str(refused)
    assert said in str(refused)


def test_the_form_for_clients_is_still_there() -> None:
    """Its options and those of servers do not stand together."""
    assert (
        "auto takes"
        in command("--clients", "1000", "--d", "4", "--epsilon", "1").stdout
    )
    refused = command(*ASKED, "--clients", "1000").exception
    assert isinstance(refused, UserError)
    assert "--clients or --server" in str(refused)
