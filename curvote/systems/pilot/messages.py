"""Messages of `pilot`: a direction, a word of `counts`, or a bit about one of both."""

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from curvote.base.errors import UserError
from curvote.chain.stage import Columns
from curvote.curves.encoding import Encoding
from curvote.curves.partition import PARTS, Partitions
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.messages import message
from curvote.messages.roles import EVERYBODY, Senders
from curvote.systems.cells.messages import COUNTS_ANSWER, Answer
from curvote.systems.common import judgement
from curvote.systems.direct.messages import Direction, task_terms
from curvote.systems.mrma.messages import Vote
from curvote.wire.task import Candidates, Task

# A fifth of the clients make the line, three fifths the table, a fifth judge. On even
# seeds of `benchmarks.court.volunteers` other parts (.1 to .4 for the line) are as
# good within .2 points; a table needs more answers than a line.
LINE_END, TABLE_END = 0.2, 0.8


LINE_SENDERS = Senders(EVERYBODY.roles, end=LINE_END)


@dataclass(frozen=True)
class LineReport(Direction):
    """Report of the first clients, for the line."""

    senders: Senders = LINE_SENDERS
    who: str = "client of the first fifth"

    def terms(
        self, setting: message.SettingReader, encoding: Encoding
    ) -> dict[str, Any]:
        """Return the constants of the label moment alone."""
        return task_terms("mean", encoding, "auto")


class TableAnswer(Answer):
    """Answer of the next clients, for the table."""

    who = "client of the three fifths behind"


class Judgement(Vote):
    """A client's noised bit: is this rule right for it? Two classes, two rules.

    Each rule is a line, plus for the second (whose line is 0) a public table: what a
    z's cell of each partition says for the second class. Which one a client judges is
    dealt at random, whoever it is.
    """

    senders = Senders(EVERYBODY.roles, start=TABLE_END)
    who, what = "client of the last fifth", 'one noised bit: "this rule was right"'
    detail = "each judges one of two rules, once, with the whole budget"
    params = (*PARTS, "score")

    def task(self, base_task: Task, read: message.TableReader) -> Task:
        """Return the base task with both rules."""
        line, card = read("decode", "classifier"), read("decode", "scorecard")
        score = card["score"].reshape(len(card["score"]), -1, 2)
        rows = {**card, "score": score[..., 1] - score[..., 0]}
        return self._with_rules(base_task, (line["coef"], line["intercept"]), rows)

    def nominal_task(self, base_task: Task) -> Task:
        """Return a task whose line is the first axis, and whose table bends it."""
        d, rescale = base_task.encoding.d, base_task.encoding.rescale
        partitions = COUNTS_ANSWER.nominal_partitions(d, rescale)
        score = np.tile(np.linspace(1, -1, partitions.cells) ** 2 - 0.5, (d, 1))
        line = np.eye(1, d), np.zeros(1)
        return self._with_rules(base_task, line, {**partitions.columns, "score": score})

    def check_task(self, task: Task) -> None:
        """Refuse other fields, and a table or lines of other shapes."""
        message.check_fields(task, params=self.params, candidates=True)
        partitions, score = _table(task)
        if score.shape != (partitions.count, partitions.cells):
            raise UserError(
                f"score has shape {score.shape}; it holds a number for each of"
                f" {partitions.cells} cells of {partitions.count} partitions."
            )
        if task.candidates is None or len(task.candidates.coef) != 2:
            raise UserError("there are two rules to judge.")

    def decisions(self, task: Task, data: message.ClientData) -> message.Array:
        """Return the score of each client by the rule that it judges, (n,)."""
        if data.z.shape[1:] != (task.encoding.d,):
            raise UserError(f"z has shape {data.z.shape}; not {task.encoding.d} wide.")
        return super().decisions(task, data) + np.where(
            np.asarray(data.candidate) == 1, table_scores(*_table(task), data.z), 0.0
        )

    def _with_rules(
        self, base_task: Task, line: tuple[message.Array, message.Array], rows: Columns
    ) -> Task:
        lines = (np.concatenate([part, 0 * part]) for part in line)
        return replace(
            base_task,
            asks=self.name,
            mechanism=BinaryRR.name,
            candidates=Candidates(*lines),
            params={name: rows[name].tolist() for name in self.params},
        )


def _table(task: Task) -> tuple[Partitions, message.Array]:
    partitions = Partitions.from_columns(task.params, task.encoding.d)
    return partitions, np.asarray(task.params["score"])


def table_scores(
    partitions: Partitions, score: message.Array, z: message.Array
) -> message.Array:
    """Return the sum over partitions of the ``score`` (Q, C) of z's cells, (n,)."""
    questions = range(partitions.count)
    cells = [partitions.place(z, np.full(len(z), q)) for q in questions]
    return np.asarray(sum(score[q][cells[q]] for q in questions))


def better_rule(task: Task, read: message.TableReader) -> Columns:
    """Return the rule that was taken: the line, or the table's cells."""
    place = int(read("aggregate", "ensemble")["weight"].argmax())
    return read("decode", ("classifier", "scorecard")[place])


MESSAGES: Final[dict[str, message.Message]] = {
    "report": LineReport(),
    "answer": TableAnswer(
        what=COUNTS_ANSWER.what,
        nominal_partitions=COUNTS_ANSWER.nominal_partitions,
        senders=Senders(EVERYBODY.roles, LINE_END, TABLE_END),
        name="answer",
        stage="answer",
    ),
    "vote": Judgement(),
    "judgement": judgement.ReleaseJudgement(better_rule),
}
