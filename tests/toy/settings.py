"""The sections of pipelines.yaml that the toy reads."""

from curvote.chain.settings import Epsilon, Strict, WholeNumber


class Parties(Strict):
    """How many people answer, how many shops count, and who is only tested."""

    people: WholeNumber
    shops: WholeNumber
    test: WholeNumber


class Levels(Strict):
    """What each party spends on its one message."""

    people: Epsilon
    shops: Epsilon


class Settings(Strict):
    """Who there is, levels by name, and how far centres are drawn to the middle."""

    parties: Parties
    levels: dict[str, Levels]
    shrink: list[float] = [0.0]
