"""What tests of several pages need."""

import pytest

from curvote.report import page
from curvote.report.data import PageData
from tests.drawings import left_blank


@pytest.fixture(scope="module")
def text(data: PageData, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the page of a module's ``data``."""
    with left_blank():
        return page.render_report(data, tmp_path_factory.mktemp("page")).read_text()
