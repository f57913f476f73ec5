"""Stages of `online`: reports, candidates, votes and updates by arrival."""

from typing import Final

# In place of a candidate's number: an earlier ensemble, watched for a drop.
INCUMBENT: Final = -1
