"""The tables of the toy, and its three classes."""

from typing import Final

from curvote.chain.stage import FILE, TEXT, VECTOR, Table

CLASSES: Final = ("red", "green", "blue")
PARTIES: Final = ("people", "shops", "test")

TOWN: Final = Table(
    "town",
    {"party": PARTIES, "place": VECTOR, "colour": CLASSES},
    side="client",
    unit="record",
)
ANSWERS: Final = Table("answers", {"place": VECTOR, "colour": CLASSES})
TALLY: Final = Table("tally", {"colour": CLASSES})
MODELS: Final = Table("models", {"method": TEXT, "model": FILE}, unit="classifier")
