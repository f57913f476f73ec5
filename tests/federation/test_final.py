"""The classifiers of many servers as one: each row is judged by its own server's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from curvote.base.errors import UserError
from curvote.curves.basis import identity
from curvote.curves.curve_classifier import CurveClassifier
from curvote.curves.encoding import Encoding, Linear
from curvote.systems.federated.model import ServersClassifier


def of_servers(*signs: float) -> ServersClassifier:
    """Return servers that say "yes" where sign * a is above 0, whatever b is."""
    encoding = Encoding(identity(2), "max_abs")
    lines = (Linear([sign, 0.0], 0.0, "rescaled") for sign in signs)
    made = (CurveClassifier.of(encoding, "ab", line, ("no", "yes")) for line in lines)
    return ServersClassifier(list(made))


ROWS = pd.DataFrame({"a": [1.0, 1, -1], "b": 0.0, "server": [0, 1, 1]})


def test_each_row_is_judged_by_its_own_server() -> None:
    """Columns are found by name; labels are the publisher's."""
    model = of_servers(1, -1)
    assert model.columns == ["server", "a", "b"]
    assert list(model.classes_) == ["no", "yes"]
    assert list(model.predict(ROWS)) == ["yes", "no", "yes"]
    assert list(model.predict(ROWS.astype(float))) == ["yes", "no", "yes"]
    assert list(model.predict(ROWS.astype(int))) == ["yes", "no", "yes"]
    assert model.predict(ROWS[:0]).tolist() == []


def test_what_is_no_number_is_refused() -> None:
    """MLflow lets any column pass: the model itself says what is wrong."""
    with pytest.raises(UserError, match="no number"):
        of_servers(1, -1).predict(ROWS.assign(b="high"))


@pytest.mark.parametrize("server", [2, -1, 0.5, np.nan, "0"])
def test_a_server_that_there_is_not_is_refused(server: object) -> None:
    """By its number, before anything is judged."""
    with pytest.raises(UserError, match="it must be from 0 to 1"):
        of_servers(1, -1).predict(ROWS.assign(server=server))


def test_the_columns_that_are_wanted_are_told() -> None:
    """All of them where there are few, and where none has a name."""
    with pytest.raises(UserError, match="1 columns are missing, such as 'server'"):
        of_servers(1).predict(ROWS.drop(columns="server"))
    with pytest.raises(UserError, match="3, by name: 'server', 'a', 'b'"):
        of_servers(1).predict(ROWS.to_numpy())
