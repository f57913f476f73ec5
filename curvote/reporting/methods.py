"""What methods are called on a page, what each does, and who may use it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """What a method is called on the page, what it does, and who may use it."""

    label: str
    meaning: str
    study_only: bool = False


# What `direct` ends in; which of them may differ from one epsilon to the next.
ARMS = ("mean", "joint", "two")

METHODS: dict[str, Method] = {
    "mrma": Method(
        "MRMA",
        "Weak classifiers that do worse than a coin are reversed; those whose"
        " estimated utility then passes the cutoff are averaged, the better ones"
        " with more weight.",
    ),
    "ma": Method("MA", "The same weighted average, but nothing is reversed."),
    "mr": Method("MR", "Mean error of the weak classifiers after reversal."),
    "best_single": Method(
        "best single", "The one reversed classifier of highest estimated utility."
    ),
    "weak": Method("weak", "Mean error of the weak classifiers as they were trained."),
    "federated": Method(
        "federated",
        "The classifiers of all servers, reversed and averaged by what each server's"
        " own clients say of them.",
    ),
    "online": Method(
        "online", "MRMA kept up to date with the votes of clients who came later."
    ),
    "frozen": Method("frozen", "MRMA as it was after the first arrival."),
    "mean": Method(
        "direct, mean",
        "Every client reports one noised direction, label times record; the mean of"
        " all is the classifier.",
    ),
    "joint": Method(
        "direct, joint",
        "The same, but a part of each report tells the second moment, which corrects"
        " the mean.",
    ),
    "two": Method(
        "direct, two rounds",
        "The first clients' reports centre and whiten what the others report.",
    ),
    "votes": Method(
        "votes",
        "No client trains: random directions are judged by one noised vote of each"
        " client, reversed and averaged by their utility.",
    ),
    "clean": Method(
        "clean",
        "A learner on the clients' own numbers, without any noise.",
        study_only=True,
    ),
    "all_data": Method(
        "all data",
        "One classifier trained on noised reports of all clients, voters included.",
        study_only=True,
    ),
    "averaging": Method(
        "averaging",
        "Plain mean of classifiers trained on equal parts of all those reports.",
        study_only=True,
    ),
    "voting": Method(
        "voting", "Majority vote of the same classifiers.", study_only=True
    ),
    "histogram": Method(
        "histogram",
        "The class that is larger in a record's cell of a coarse grid; every client"
        " sends a noised number for each cell.",
        study_only=True,
    ),
    "majority": Method(
        "majority",
        "Always guesses one class: the one that a noised label from every client"
        " says is larger. It looks at no record.",
        study_only=True,
    ),
}


def method_of(series: str) -> Method:
    """Return the method behind a series name; an unknown one is shown by its name."""
    protocol, _, key = series.rpartition(": ")
    known = METHODS.get(key, Method(key, ""))
    label = f"{protocol}: {known.label}" if protocol else known.label
    return Method(label, known.meaning, known.study_only)
