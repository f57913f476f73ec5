"""An intake that keeps sums: exact, of one size, and silent about who sent what."""

import json
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import InternalError, UserError
from curvote.curves.basis import identity
from curvote.curves.encoding import Encoding
from curvote.intake.admission import RefusedEnvelope
from curvote.intake.box import Intake
from curvote.learning.directions import BlockMeans, ReportMean
from curvote.learning.sums import MessageSums, SumForm, bits_below
from curvote.messages.arms import directions_to_params, make_directions
from curvote.messages.message import (
    client_data,
    message_of,
    parse_message,
    parse_messages,
    payload_at,
)
from curvote.wire.envelope import Invitation, issue_invitations, seal_message
from curvote.wire.key_tree import InvitationTree
from curvote.wire.strict_json import canonical_json
from curvote.wire.task import Task
from tests.rounds import VOTES, payload

N = 60
D = 3
ENCODING = Encoding(identity(D), "max_abs", feature_map="coefficients")


def direct_task(arm: str) -> Task:
    """Return the task of an arm of `direct`, about three classes."""
    vectors = make_directions(arm, D, "max_abs", "auto", 3)
    terms = {"params": directions_to_params(vectors), "asks": "report"}
    protocol = "direct_one_of" if arm == "one_of" else "direct"
    name = "one_of" if arm == "one_of" else "privunit"
    classes = ("a", "b", "c")
    return Task(ENCODING, classes, 1.0, protocol, mechanism=name, **terms)


def answers(task: Task, n: int) -> list[dict[str, Any]]:
    """Return the messages of honest clients."""
    rng = np.random.default_rng(n)
    data = client_data(task, rng.normal(size=(n, D)), rng.integers(3, size=n))
    drawn = message_of(task).draw(task, data, SeededEntropy(n))
    return [payload_at(drawn, k) for k in range(n)]


def filled(
    path: Path,
    task: Task,
    invited: Sequence[Invitation] | InvitationTree,
    sent: Sequence[bytes],
    keep: str | None = None,
) -> Intake:
    """Return an intake with one open round that has taken envelopes in."""
    intake = Intake(path)
    form = message_of(task).sum_form(task)
    about = {"pipeline": "p", "needed": 1, "invitations": invited}
    intake.open_round("one-1", task=task, keep=keep or str(form), **about)
    for start in range(0, len(sent), 7):
        told = intake.take_batch(sent[start : start + 7], parse_messages)
        assert not any(told)
    return intake


def state(intake: Intake) -> str:
    """Return the state of the one round, closed."""
    (batch,) = intake.batches("one-1", intake.close("one-1")).values()
    return batch.to_text()


# ------------------------------------------------------------------------ exactness
numbers = st.floats(-8, 8, allow_subnormal=True)
messages = st.lists(
    st.tuples(st.integers(0, 2), st.lists(numbers, min_size=2, max_size=2)),
    min_size=1,
    max_size=30,
)


@settings(max_examples=60)
@given(messages, st.randoms(use_true_random=False))
def test_any_order_and_grouping_make_the_same_bytes(sent: Any, rng: Any) -> None:
    """And no number of the state is one with a point."""
    form = SumForm("v", bits_below(8))
    payloads = [{"named": k, "v": v} for k, v in sent]
    whole = MessageSums(form)
    whole.add(payloads)
    for _ in range(3):
        rng.shuffle(payloads)
        parts: list[MessageSums] = []
        at = 0
        while at < len(payloads):
            end = at + rng.randint(1, 9)
            parts.append(MessageSums(form))
            parts[-1].add(payloads[at:end])
            at = end
        rng.shuffle(parts)
        total = MessageSums.of_all(parts)
        again = MessageSums.from_text(form, total.to_text())
        assert again.to_text() == whole.to_text() == total.to_text()
        assert again.digest() == whole.digest()
    assert {type(x) for row in json.loads(whole.to_text()).values() for x in row} == {
        int
    }
    exact = np.array([sum(v[c] for _, v in sent) for c in range(2)])
    total = sum(np.array(row[1:]) for row in whole.words.values())
    assert total / 2.0**form.bits == pytest.approx(exact, abs=1e-11)


def test_a_number_beyond_the_bound_is_no_message() -> None:
    """It would not fit the integers; another width neither."""
    sums = MessageSums(SumForm("v", bits_below(1)))
    with pytest.raises(InternalError, match="larger"):
        sums.add([{"v": [1e9]}])
    sums.add([{"v": [0.5]}])
    with pytest.raises(InternalError, match="among others"):
        sums.add([{"v": [0.5, 0.5]}])


@pytest.mark.parametrize("arm", ["mean", "joint", "one_of"])
def test_sums_and_rows_decode_to_the_same_bits(tmp_path: Path, arm: str) -> None:
    """A mean of kept sums is that of the rows, added in the same integers."""
    task = direct_task(arm)
    invited = issue_invitations(task, N)
    sent = [seal_message(i, m) for i, m in zip(invited, answers(task, N), strict=True)]
    with filled(tmp_path / "sums", task, invited, sent) as intake:
        (kept,) = intake.batches("one-1", intake.close("one-1")).values()
    with filled(tmp_path / "rows", task, invited, sent, "rows") as intake:
        (rows,) = intake.batches("one-1", intake.close("one-1")).values()
    payloads = [m for m, _ in rows.payloads()]
    directions = np.array([m["direction"] for m in payloads])
    if arm == "one_of":
        named = np.array([m["named"] for m in payloads])
        parts = [(named[:9], directions[:9]), (named[9:], directions[9:])]
        mean, other = (
            BlockMeans.from_sums(kept, 3),
            BlockMeans.from_shards(parts, 3, task.epsilon),
        )
    else:
        mean = ReportMean.from_sums(kept)
        other = ReportMean.from_shards([directions[:9], directions[9:]], task.epsilon)
    assert mean.mean.tobytes() == other.mean.tobytes()
    assert mean.n == other.n == N
    assert len(kept.to_text()) < 6000


def test_words_have_the_digest_of_rows(tmp_path: Path) -> None:
    """So that a release of votes has the same name, however they were kept."""
    invited = issue_invitations(VOTES, N)
    sent = [seal_message(i, payload(VOTES, i, k)) for k, i in enumerate(invited)]
    digests = []
    for keep in ("sums", "rows", None):
        path = tmp_path / str(keep)
        with Intake(path) as intake:
            about = {"pipeline": "p", "needed": 1, "invitations": invited}
            intake.open_round("one-1", task=VOTES, keep=keep, **about)
            assert not any(intake.take_batch(sent, parse_messages))
            digests.append(intake.close("one-1"))
            assert intake.round("one-1").accepted == N
    assert len(set(digests)) == 1


# -------------------------------------------------------------------- what a file tells
def file_of(
    path: Path,
    pairs: list[tuple[Invitation, dict[str, Any]]],
    keep: str | None = None,
) -> bytes:
    """Return the bytes of the file after these clients have sent these messages."""
    keys = iter(range(1, 99))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "randbits", lambda _: next(keys))
        invited = sorted((i for i, _ in pairs), key=lambda i: i.id)
        task = direct_task("mean")
        sent = [seal_message(*pair) for pair in pairs]
        with filled(path, task, invited, sent, keep):
            pass
    return path.read_bytes()


def test_a_thief_of_the_file_learns_sums_and_who_answered(tmp_path: Path) -> None:
    """Any order, and the same messages from other clients: the same file to the byte.

    An intake that numbers rows as they come is caught by the same comparison.
    """
    task = direct_task("mean")
    invited, sent = issue_invitations(task, 20), answers(task, 20)
    pairs = [*zip(invited, sent, strict=True)]
    crossed = [*zip(invited, sent[::-1], strict=True)]
    first = file_of(tmp_path / "a", pairs)
    assert first == file_of(tmp_path / "b", pairs[::-1])
    assert first == file_of(tmp_path / "c", crossed)
    for message in sent:
        assert canonical_json(message["direction"][0]) not in first
    assert first != file_of(tmp_path / "d", [*pairs[:19], (invited[19], sent[0])])
    numbered = [
        file_of(tmp_path / name, order, "rows")
        for name, order in (("e", pairs), ("f", pairs[::-1]), ("g", crossed))
    ]
    assert numbered[0] not in numbered[1:]


# ----------------------------------------------------------------------- trees
def test_a_tree_makes_invitations_that_are_used_once(tmp_path: Path) -> None:
    """No line of them is kept: a bit each, whatever order they come in."""
    tree = InvitationTree.grow(VOTES, 70_000, "0" * 64)
    assert InvitationTree.from_json(tree.to_json()) == tree
    some = [tree.invitation(p) for p in (0, 1, 255, 256, 65_535, 65_536, 69_999)]
    assert len({i.id for i in some} | {i.key for i in some}) == 2 * len(some)
    assert [i.about for i in some] == [p % 3 for p in (0, 1, 255, 256, 0, 1, 0)]
    sent = [seal_message(i, payload(VOTES, i, k)) for k, i in enumerate(some)]
    with filled(tmp_path / "t", VOTES, tree, sent[:5]) as intake:
        told = intake.take_batch([*sent, sent[6]], parse_messages)
        assert [t and t.reason for t in told] == [
            *["used invitation"] * 5,
            *[None, None, "used invitation"],
        ]
        assert (intake.round("one-1").issued, intake.round("one-1").accepted) == (
            70_000,
            7,
        )
        other = InvitationTree.grow(VOTES, 10)
        forged = Invitation(**(vars(some[0]) | {"key": "0" * 64}))
        for odd, reason in (
            (other.invitation(3), "unknown invitation"),
            (forged, "wrong seal"),
        ):
            with pytest.raises(RefusedEnvelope) as caught:
                intake.take(seal_message(odd, payload(VOTES, some[0])), parse_message)
            assert caught.value.reason == reason
    assert len((tmp_path / "t").read_bytes()) < 200_000


def test_a_part_of_a_tree_makes_no_other_invitation() -> None:
    """It holds the nodes above its places alone, and masks nobody's place."""
    tree = InvitationTree.grow(VOTES, 200_000)
    part = tree.part(65_000, 70_000)
    assert len(part.nodes) < 400
    for place in (65_000, 65_535, 65_536, 131_071, 134_999):
        assert part.invitation(place) == tree.invitation(place)
        assert part.place(tree.invitation(place).id) == place
    for place in (64_999, 135_000, 0):
        assert part.place(tree.invitation(place).id) is None
        with pytest.raises(UserError, match="lacks the secret"):
            part.invitation(place)
    with pytest.raises(UserError, match="not all in this tree"):
        part.part(64_000, 2000)
    secrets_known = {*part.nodes.values()}
    assert not secrets_known & {*tree.part(0, 65_000).nodes.values()}


# ----------------------------------------------------------------------- merging
@pytest.mark.parametrize("kind", ["lines", "tree"])
def test_three_merged_intakes_are_one(tmp_path: Path, kind: str) -> None:
    """The same bytes of the state; a second time adds nothing."""
    task = direct_task("joint")
    tree = InvitationTree.grow(task, N)
    invited: Any = issue_invitations(task, N) if kind == "lines" else tree
    sent = [seal_message(i, m) for i, m in zip(invited, answers(task, N), strict=True)]
    with filled(tmp_path / "one", task, invited, sent) as intake:
        alone = state(intake)
    with filled(tmp_path / "a", task, invited, sent[:20]):
        pass
    for name, part in (("b", sent[20:45]), ("c", sent[45:])):
        with filled(tmp_path / name, task, invited, part):
            pass
    with Intake(tmp_path / "a") as intake:
        assert intake.merge(tmp_path / "b") == {"one-1": 25}
        assert intake.merge(tmp_path / "c") == {"one-1": 15}
        assert intake.merge(tmp_path / "b") == {"one-1": 0}
        assert intake.round("one-1").accepted == N
        told = intake.take_batch(sent, parse_messages)
        assert {t.reason for t in told} == {"used invitation"}
        assert state(intake) == alone
    with Intake(tmp_path / "b") as intake:
        assert intake.round("one-1").closed


def test_a_round_that_was_closed_before_the_copy_is_passed_over(tmp_path: Path) -> None:
    """The first round's reports are in both files; the second round is merged."""
    task, later = direct_task("mean"), issue_invitations(VOTES, 4)
    invited = issue_invitations(task, 4)
    sent = [seal_message(i, m) for i, m in zip(invited, answers(task, 4), strict=True)]
    votes = [seal_message(i, payload(VOTES, i, k)) for k, i in enumerate(later)]
    with filled(tmp_path / "a", task, invited, sent) as intake:
        intake.close("one-1")
        about = {"pipeline": "p", "needed": 1, "invitations": later}
        intake.open_round("two-1", task=VOTES, keep="rows", **about)
    (tmp_path / "b").write_bytes((tmp_path / "a").read_bytes())
    for name, part in (("a", votes[:1]), ("b", votes[1:])):
        with Intake(tmp_path / name) as intake:
            assert not any(intake.take_batch(part, parse_messages))
    with Intake(tmp_path / "a") as intake:
        assert intake.merge(tmp_path / "b", "another") == {}
        assert intake.merge(tmp_path / "b", "p") == {"one-1": 0, "two-1": 3}
        assert intake.round("two-1").accepted == 4


def test_what_two_intakes_counted_is_refused_and_named(tmp_path: Path) -> None:
    """Nothing is added then, and both go on."""
    task = direct_task("mean")
    tree = InvitationTree.grow(task, 9)
    sent = [seal_message(i, m) for i, m in zip(tree, answers(task, 9), strict=True)]
    for name, part in (("a", sent[:4]), ("b", sent[3:7])):
        with filled(tmp_path / name, task, tree, part):
            pass
    with Intake(tmp_path / "a") as intake:
        before = intake.round("one-1")
        with pytest.raises(UserError, match="place 3 was counted here, too"):
            intake.merge(tmp_path / "b")
        assert intake.round("one-1") == before
    with Intake(tmp_path / "b") as intake:
        assert not intake.round("one-1").closed
        with Intake(tmp_path / "other") as stranger:
            pass
        assert stranger.name
        with pytest.raises(UserError, match="begins as a copy"):
            Intake(tmp_path / "other").merge(tmp_path / "b")
