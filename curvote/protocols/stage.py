"""The tables of a block (to go with `block`)."""

from __future__ import annotations

from curvote.chain.stage import Columns

Tables = dict[str, list[Columns]]
