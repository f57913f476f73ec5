"""Published codes that the tables of protocol online hold."""

from typing import Final

# In place of a candidate's number: an earlier ensemble, watched for a drop.
INCUMBENT: Final = -1
