"""Pages for tests of their words: every figure is made, and none is laid out or saved.

What figures look like, and that they are the same twice, stands in
`tests/reporting/test_figures.py` and in `test_report_page.py`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

BLANK = {
    "svg": b'<svg xmlns="http://www.w3.org/2000/svg" version="1.1"'
    b' width="1pt" height="1pt"/>',
    "png": b"",
}


@contextmanager
def left_blank() -> Iterator[None]:
    """Let `figures.save_bytes` return a blank drawing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("curvote.report.figures.save_bytes", lambda _, kind: BLANK[kind])
        yield
