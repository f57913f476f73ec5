"""Messages of `online`: those of MRMA, sent in arrivals."""

from curvote.systems.mrma import messages


class ArrivalVote(messages.Vote):
    """A vote of a client in one arrival."""

    detail = (
        "each judges one classifier, once, in the arrival it comes with: a weak one, or"
        " an earlier ensemble"
    )


MESSAGES = {"report": messages.Report(), "vote": ArrivalVote()}
