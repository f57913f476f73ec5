"""Names of the wings; adding one is one folder and one line here."""

WINGS = (
    "curvote.reproduce.mrma",
    "curvote.reproduce.dtk",
    "curvote.reproduce.vec",
    "curvote.reproduce.qcu",
)
