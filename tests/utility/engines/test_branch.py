from itertools import pairwise

import numpy as np
import pytest

from curvote.mechanisms.base import atomic_law, product_law
from curvote.systems.utility.method.engines import branch
from curvote.systems.utility.method.engines.base import make_channel

BOUNDS = np.array([[0.0, 1.0], [-2.0, 3.0]])
VALUES = np.array([[0.3, 1.0], [0.9, -2.0]])
WHO = np.arange(2)


class Tilted(branch.Oracle):
    """Answers 1 above a line, with a tie on it: bounds by intervals."""

    n_classes = 2
    slopes = np.array([5.0, -1.0])

    def judge(self, who, low, high):
        ends = np.stack([low, high]) * self.slopes
        least, most = ends.min(axis=0).sum(axis=1), ends.max(axis=0).sum(axis=1)
        answer = (least > 2 - most).astype(np.int64)
        effect = np.abs(high - low) * np.abs(self.slopes)
        return branch.Verdict(answer, (least > 1) | (most <= 1), effect)

    def at(self, points):
        return ((points * self.slopes).sum(axis=-1) > 1).astype(np.int64)


def found(law, width=0.01, most=4000):
    """Return the boxes for a law, of two records."""
    oracle = Tilted()
    everything = branch.root_boxes(2, BOUNDS)
    boxes = branch.judge_boxes(
        oracle, WHO, everything, np.full((2, everything.m), True)
    )
    search = branch.Search(oracle, WHO, branch.mass_weigher(law), branch.make_snap(law))
    return search.refined(
        search.snap_boxes(boxes), branch.stop_when_narrow(width), most
    )[0]


def placed(boxes, points):
    """Return which boxes of the first record hold each point, (points, m)."""
    inside = (boxes.low[0] <= points[:, None]) & (points[:, None] <= boxes.high[0])
    return inside.all(axis=2)


def sampled_points(boxes):
    """Return points at the boxes' own ends, one float beyond them, and anywhere."""
    rng = np.random.default_rng(2)
    ends = np.concatenate([boxes.low[0], boxes.high[0]])
    ends = ends[np.isfinite(ends).all(axis=1)][:300]
    nearby = [np.nextafter(ends, side) for side in (-np.inf, np.inf)]
    return np.concatenate([ends, *nearby, rng.uniform(-5, 5, (300, 2))])


def test_every_float_lies_in_exactly_one_box_whatever_was_split():
    """Splitting keeps a partition of the floats, at the ends as well."""
    boxes = found(branch.reference_law(VALUES, BOUNDS))
    assert boxes.m > 100
    points = sampled_points(boxes)
    assert (placed(boxes, points).sum(axis=1) == 1).all()


def test_what_is_certain_is_the_answer_at_every_point():
    """Certain boxes tell the answer at their ends and inside; guesses do not."""
    oracle, boxes = Tilted(), found(branch.reference_law(VALUES, BOUNDS))
    points = sampled_points(boxes)
    box = placed(boxes, points).argmax(axis=1)
    told = boxes.answer[0, box] == oracle.at(points)
    assert told[boxes.certain[0, box]].all()
    assert not told.all()


@pytest.mark.parametrize("clip", [True, False])
@pytest.mark.parametrize("mechanism", ["laplace", "pm_01", "k_rr", "exponential"])
def test_the_masses_of_a_partition_add_up_to_one(mechanism, clip):
    """Nothing is lost between boxes, and the width asked for is reached."""
    channel = make_channel(
        mechanism,
        epsilon=2.0,
        bounds=BOUNDS,
        fill_value=np.array([0.5, 0.0]),
        clip=clip,
    )
    law = channel.law(VALUES)
    boxes = found(law, width=0.02)
    weights = branch.mass_weigher(law)(WHO, boxes.low, boxes.high)
    assert np.allclose(weights.sum(axis=1), 1, atol=1e-9)
    assert ((weights * ~boxes.certain).sum(axis=1) <= 0.02).all()


def test_a_bracket_holds_the_truth_of_atoms_and_no_atom_is_counted_twice():
    """Atoms at ends and on the line of a tie are summed as enumeration does."""
    levels, rng = np.linspace(0, 1, 11), np.random.default_rng(4)
    one, other = rng.dirichlet(np.ones(11), 2), rng.dirichlet(np.ones(11), 2)
    law = product_law(atomic_law(levels, one), atomic_law(5 * levels - 2, other))
    boxes = found(law, width=0.0)
    share, lower = branch.box_shares(
        boxes, branch.mass_weigher(law)(WHO, boxes.low, boxes.high), 2
    )
    grid = np.stack(np.meshgrid(levels, 5 * levels - 2, indexing="ij"), axis=-1)
    truth = np.einsum("ni,nj,ij->n", one, other, Tilted().at(grid))
    answers = branch.bracket_from_certain(share, lower)
    assert np.allclose(answers.share[:, 1], truth, atol=1e-9)
    assert (answers.lower[:, 1] <= truth).all()
    assert (truth <= answers.upper[:, 1]).all()


def test_atoms_draw_boxes_in_so_that_less_is_open():
    """A withheld feature is a point in every box that has any mass."""
    channel = make_channel(
        "pm_01",
        epsilon=2.0,
        bounds=BOUNDS,
        fill_value=np.array([0.5, 0.0]),
        split=[1, 0],
    )
    law = channel.law(VALUES)
    boxes = found(branch.reference_law(VALUES, BOUNDS), width=0.2)
    drawn_in = branch.Search(
        Tilted(), WHO, branch.mass_weigher(law), branch.make_snap(law)
    ).snap_boxes(boxes)
    open_ = [
        (branch.mass_weigher(law)(WHO, each.low, each.high) * ~each.certain).sum(axis=1)
        for each in (boxes, drawn_in)
    ]
    assert (open_[1] < open_[0]).all()
    some = branch.mass_weigher(law)(WHO, drawn_in.low, drawn_in.high) > 0
    assert (drawn_in.low[some][:, 1] == 0.0).all()
    assert (drawn_in.high[some][:, 1] == 0.0).all()


def test_the_budget_of_boxes_is_kept_and_more_boxes_leave_less_open():
    """The bracket is valid at any time and shrinks with the boxes."""
    law = branch.reference_law(VALUES, BOUNDS)
    open_ = []
    for most in (40, 160, 640):
        boxes = found(law, width=0.0, most=most)
        assert boxes.m == most
        weights = branch.mass_weigher(law)(WHO, boxes.low, boxes.high)
        open_.append((weights * ~boxes.certain).sum())
    assert all(after < 0.7 * before for before, after in pairwise(open_))


def test_middles_leave_something_on_both_sides():
    """Neighbouring floats and infinite ends can be cut, too."""
    tiny = np.nextafter(1.0, 2.0)
    low = np.array([0.0, 1.0, -np.inf, -np.inf, 7.0, -3.0])
    high = np.array([1.0, tiny, -4.0, 0.5, np.inf, np.inf])
    at = branch.cut_points(low, high)
    assert np.isfinite(at).all()
    assert (low <= at).all()
    assert (at < high).all()


def test_volumes_count_the_sides_with_a_width():
    """A side without a width does not make a box weigh nothing."""
    low, high = np.array([[0.0, 1.0]]), np.array([[2.0, 1.0]])
    weigh = branch.volume_weigher(low, high)
    part = weigh(np.array([0]), np.array([[[0.0, 1.0]]]), np.array([[[0.5, 1.0]]]))
    assert part == [[0.25]]
