"""Stage report of a study of `counts`: its true error, and the majority's."""

from curvote.protocols.cells.scoring import scorecard_score_stage

one = scorecard_score_stage("counts")
