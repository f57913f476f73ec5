"""What leaves whom: a person's place and colour, and a colour that a shop saw."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, FiniteFloat

from curvote.base import validate
from curvote.base.entropy import Entropy, stream
from curvote.base.errors import UserError
from curvote.chain.stage import Columns
from curvote.chain.system import MessageDescription
from curvote.curves.encoding import Encoding
from curvote.mechanisms import per_coordinate
from curvote.mechanisms.coordinates import PerCoordinate
from curvote.mechanisms.randomized_response import KRR
from curvote.messages.message import ClientData, Message, SettingReader
from curvote.messages.roles import Senders
from curvote.wire.task import Task

Array = NDArray[np.float64]
K = 3


class ColourPayload(BaseModel):
    """A noised colour as JSON."""

    model_config = ConfigDict(extra="forbid", strict=True)

    colour: Literal[0, 1, 2]


class AnswerPayload(ColourPayload):
    """A noised place and colour as JSON."""

    place: list[FiniteFloat]


class Colour(Message):
    """One colour of three, by k-ary randomized response with the whole budget."""

    name, stage, table, party = "colour", "count", "tally", "shops"
    senders, payload, mechanism = Senders((party,)), ColourPayload, "k_rr"
    who, what, detail = "each shop", "one noised colour", ""
    share = 1.0

    def describe(self, config: Mapping[str, Any], d: int) -> list[MessageDescription]:
        """Return what leaves the party, and what it spends at each level."""
        spent = (level[self.party] for level in config["levels"].values())
        epsilon = " or ".join(f"{each:g}" for each in spent)
        return [
            MessageDescription(
                self.who, self.what, self.mechanism, self.detail, epsilon
            )
        ]

    def terms(self, setting: SettingReader, encoding: Encoding) -> dict[str, Any]:
        """Return the mechanism: nothing is left to the configuration."""
        return {"mechanism": self.mechanism}

    def nominal_task(self, stated: Task) -> Task:
        """Return the task with the one mechanism that it may name."""
        return replace(stated, mechanism=self.mechanism)

    def check_task(self, task: Task) -> None:
        """Refuse another mechanism."""
        validate.one_of((self.mechanism,), mechanism=task.mechanism)

    def hides(self, task: Task) -> KRR:
        """Return what hides a colour."""
        return KRR(epsilon=self.share * task.epsilon, n_classes=K)

    def max_privacy_loss(self, task: Task) -> float:
        """Return the loss of the colour."""
        return self.hides(task).worst_log_ratio()

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return the noised colours (n,)."""
        noise = stream(entropy, "label_noise")
        colour = self.hides(task).randomize(_codes(data), noise)
        return {"colour": colour.astype(np.int8)}

    def possible_mask(self, task: Task, messages: Columns) -> NDArray[np.bool_]:
        """Say for each message whether it is a colour."""
        return np.isin(messages["colour"], range(K))

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> Array:
        """Return the privacy loss of the colour."""
        pair = _codes(first), _codes(second)
        return self.hides(task).log_ratio(*pair, messages["colour"].astype(np.int64))

    def collect(self, task: Task, messages: Columns) -> Columns:
        """Return the table."""
        return messages


class Answer(Colour):
    """A place and a colour, half of the budget each."""

    name, stage, table, party = "answer", "ask", "answers", "people"
    senders, payload, mechanism = Senders((party,)), AnswerPayload, "laplace"
    who, what, detail = "each person", "a noised place and colour", "half each"
    bounded, share = True, 0.5

    def count_numbers(self, task: Task) -> int:
        """Return the two numbers of a place."""
        return task.encoding.d

    def moves(self, task: Task) -> PerCoordinate:
        """Return what hides a place."""
        return per_coordinate("laplace", task.encoding.d, task.epsilon * self.share)

    def max_privacy_loss(self, task: Task) -> float:
        """Return the loss of place and colour together."""
        return super().max_privacy_loss(task) + self.moves(task).worst_log_ratio()

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return noised places (n, 2) and colours (n,)."""
        noise = stream(entropy, "feature_noise")
        colour = super().draw(task, data, entropy)
        return {"place": self.moves(task).randomize(data.z, noise)} | colour

    def possible_mask(self, task: Task, messages: Columns) -> NDArray[np.bool_]:
        """Say for each message whether place and colour are outputs."""
        place = self.moves(task).possible_mask(messages["place"])
        return place & super().possible_mask(task, messages)

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> Array:
        """Return the privacy loss of place and colour together."""
        loss = self.moves(task).log_ratio(first.z, second.z, messages["place"])
        return np.asarray(loss + super().log_ratio(task, first, second, messages))


def _codes(data: ClientData) -> NDArray[np.int64]:
    """Return the classes (n,) of whole records; UserError where one is broken."""
    validate.finite(z=data.z)
    codes = np.asarray(data.labels)
    if codes.shape != (len(data.z),) or not np.isin(codes, range(K)).all():
        raise UserError("each record has one of three colours.")
    return codes.astype(np.int64)


MESSAGES: dict[str, Message] = {each.name: each for each in (Answer(), Colour())}
