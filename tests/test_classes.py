"""Classes as a value: two or more words, of which a binary method takes two."""

import copy
import json
import pickle
from dataclasses import replace

import pytest

from curvote.base.classes import Classes
from curvote.base.errors import UserError
from curvote.messages.message import message_of
from curvote.wire.task import Task
from tests.rounds import REPORTS


def test_classes_are_the_publishers_words_in_order() -> None:
    """They are equal to their names, in any container, and survive being sent."""
    three = Classes(["low", "middle", "high"])
    assert three == ("low", "middle", "high") == tuple(three)
    assert json.loads(json.dumps({"classes": three}))["classes"] == list(three)
    for other in (pickle.loads(pickle.dumps(three)), copy.deepcopy(three)):
        assert type(other) is Classes
        assert other == three
    assert Classes(["no", "yes"]).two == ("no", "yes")


@pytest.mark.parametrize("names", [[], ["yes"], ["yes", "no", "yes"]])
def test_fewer_than_two_or_one_twice_are_refused(names: list[str]) -> None:
    """The error shows what was given."""
    with pytest.raises(UserError, match="two or more, all different"):
        Classes(names)


def test_a_binary_method_takes_two() -> None:
    """A sign stands for one of two: a third class has none."""
    with pytest.raises(UserError, match="3 classes; only two"):
        _ = Classes("abc").two


def test_a_task_may_have_more_than_two_but_no_binary_message() -> None:
    """It goes through its JSON form; who would answer with a sign refuses it."""
    task = replace(REPORTS, classes=["low", "middle", "high"])
    assert Task.from_json(json.loads(json.dumps(task.to_json()))).digest() == (
        task.digest()
    )
    with pytest.raises(UserError, match="is about two classes"):
        message_of(task).check_task(task)
    message_of(REPORTS).check_task(REPORTS)
