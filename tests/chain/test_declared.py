"""What a system may not declare: it is our bug, said before anything runs."""

from dataclasses import replace

import pytest

from curvote.base.errors import InternalError
from curvote.chain.axis import EPSILON, Axis
from curvote.chain.lookup import all_systems, find_system
from curvote.chain.measure import Metric
from curvote.chain.stage import SIDES, STAGE_SIDES, Stage, Table
from curvote.pipeline.config.project import is_client_side


def test_two_axes_of_one_name_are_our_bug() -> None:
    """And so are two metrics or two methods: nobody could tell which is meant."""
    one = all_systems()[0]
    with pytest.raises(InternalError, match="axes epsilon stands twice"):
        replace(one, axes=(*one.axes, Axis("epsilon", lambda _: [1])))
    with pytest.raises(InternalError, match="metrics misclassification stands twice"):
        replace(one, metrics=(*one.metrics, Metric("misclassification", "again")))
    assert replace(one, axes=(EPSILON,)).axes == (EPSILON,)


def test_a_metric_or_method_that_a_system_does_not_have_is_our_bug() -> None:
    """Whoever declares it reads its name."""
    one = all_systems()[0]
    beside = Metric("passed", "passed", beside="acuracy")
    with pytest.raises(InternalError, match="mrma: there is no metric acuracy"):
        replace(one, metrics=(*one.metrics, beside))
    with pytest.raises(InternalError, match="mrma: there is no method mrme"):
        replace(one, main=("mrme",))


def test_a_stage_repeats_over_the_first_of_its_system_s_index() -> None:
    """Another part's numbers would name other repetitions of what it reads."""
    one = find_system("federated")
    *others, last = one.stages
    for index in (("server",), ("server", "replicate"), ("replicat",)):
        stages = (*others, replace(last, index=index))
        with pytest.raises(InternalError, match="stage report repeats over"):
            replace(one, stages=stages)
        with pytest.raises(InternalError, match="which does not begin replicate, serv"):
            replace(one, stages=one.stages, production=stages)
    for index in (None, ("replicate", "server"), ("replicate",), ()):
        stages = (*others, replace(last, index=index))
        assert replace(one, stages=stages).stages == stages


@pytest.mark.parametrize(
    ("side", "unit"),
    [
        ("server", "client"),
        ("server", "record"),
        ("public", "client"),
        ("srv", "message"),
    ],
)
def test_a_unit_that_contradicts_its_side_is_our_bug(side: str, unit: str) -> None:
    """No row of the server's tables stands for a client: said before anything runs."""
    with pytest.raises(InternalError, match=f"table t: a row is a {unit}, but"):
        Table("t", {"x": "int64"}, side=side, unit=unit)
    assert unit not in SIDES.get(side, ())


@pytest.mark.parametrize(
    ("side", "table"),
    [
        ("client", "server"),
        ("client (study)", "server"),
        ("client (study)", "client"),
        ("client -> server", "client"),
        ("server", "client (study)"),
        ("server -> servers", "client"),
    ],
)
def test_a_table_stands_where_its_side_may_read(side: str, table: str) -> None:
    """It stands in its stage's root of the store, whatever it says of itself."""
    made = Table("t", {"x": "int64"}, side=table, unit=SIDES[table][0])
    with pytest.raises(InternalError, match=r"stage s of side .* cannot make table t"):
        Stage("s", "nowhere", side=side, tables=(made,))
    own = STAGE_SIDES[side][0]
    made = Table("t", {"x": "int64"}, side=own, unit=SIDES[own][0])
    assert is_client_side(side) == own.startswith("client")
    assert Stage("s", "nowhere", side=side, tables=(made,)).tables == (made,)
    with pytest.raises(InternalError, match="there is no side 'servers'"):
        Stage("s", "nowhere", side="servers")
