"""What the toy is measured by, and what is measured."""

from typing import Final

from curvote.chain.measure import Look, Method, Metric

ACCURACY: Final = Metric("accuracy", "right on new records", better="higher")
CERTAINTY: Final = Metric(
    "certainty", "chance of what is named", beside="accuracy", spread=True
)
LOG_LOSS: Final = Metric("log_loss", "log loss", display="number")

CENTRES: Final = Method(
    "centres", "centres", "The nearest centre of a class.", Look("#0072b2", "o"), 900
)
WEIGHTED: Final = Method(
    "weighted",
    "weighted",
    "The nearest centre, classes weighted by what shops counted.",
    Look("#d55e00", "s"),
    901,
)
