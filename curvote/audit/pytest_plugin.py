"""The fixture ``falsify`` of pytest: a test fails where a privacy claim does."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from curvote.audit.falsification import Falsification


@pytest.fixture(name="falsify")
def falsify_fixture() -> Callable[..., "Falsification"]:
    """Return `curvote.falsify`, which fails the test where the claim is violated."""

    def fail_if_violated(call: Any, inputs: Any, **options: Any) -> "Falsification":
        # NumPy and SciPy, for whoever asks for it.
        from curvote.audit.falsification import falsify

        result = falsify(call, inputs, **options)
        if result.verdict == "violated":
            pytest.fail(str(result), pytrace=False)
        return result

    return fail_if_violated
