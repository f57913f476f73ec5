"""Which form is asked for: by public facts, and a task can be made of it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from curvote.base.errors import UserError
from curvote.systems.transfer.method.advice import choose_form, pooled_variance
from curvote.systems.transfer.method.task import Level, PublicSetup, Task

HEART = {"cleveland": 303, "hungarian": 142, "switzerland": 116, "va": 141}


def _levels(epsilon: float | str) -> dict[str, Level]:
    return {name: Level(epsilon) for name in HEART}


def _setup(
    d: int, classes: int, sizes: Mapping[str, int | None], target: str
) -> PublicSetup:
    return PublicSetup(d, classes, sizes, _levels(1.0), target)


def test_a_few_features_are_cells_and_more_a_line() -> None:
    """Two: cells at half the range; seven: sums; a large crowd: its second moment."""
    two = choose_form(_setup(2, 2, HEART, "va"))
    assert (two.release, two.params["pitch"]) == ("cells", 0.5)
    heart = choose_form(_setup(7, 2, HEART, "va"))
    assert (heart.release, heart.params["arm"]) == ("moments", "mean")
    many = {name: 100 * n for name, n in HEART.items()}
    assert choose_form(_setup(7, 2, many, "va")).params["arm"] == "joint"
    assert "p v" in heart.reason
    assert choose_form(_setup(7, 2, {"va": 141}, "va")).weights == "adapt_tar"


@pytest.mark.parametrize("d", [1, 2, 3, 4, 30])
@pytest.mark.parametrize("classes", [2, 5, 20])
def test_a_task_can_be_made_of_it(d: int, classes: int) -> None:
    """The parameters fit, and a release fits one envelope."""
    choice = choose_form(_setup(d, classes, HEART, "va"))
    features = [(f"x{k}", 0, 1) for k in range(d)]
    names = [str(k) for k in range(classes)]
    task = Task(features, names, {"va": 1.0}, choice.release, choice.params)
    assert task.params.items() >= choice.params.items()


def test_more_trust_is_less_variance() -> None:
    """Down to sampling alone; a target that is no server is refused."""
    falling = [pooled_variance(HEART, _levels(e)) for e in (0.25, 1.0, 10.0, "public")]
    assert falling == sorted(falling, reverse=True)
    assert falling[-1] == pytest.approx(1 / (4 * sum(HEART.values())))
    with pytest.raises(UserError, match="va holds is not known"):
        choose_form(_setup(7, 2, HEART | {"va": None}, "va"))
