"""Stage train of `mrma_privunit`: each weak classifier is a mean of drawn reports."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Inputs, Metadata, Params, Rows, StageContext
from curvote.protocols.classifiers import weak_columns
from curvote.protocols.direct.arms import decoding_metadata, directions_of
from curvote.server.directions import ReportMean, one_round_classifier
from curvote.server.weak import draw_subsets


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the mechanism and budget that decoding needs."""
    return decoding_metadata(inputs["privatize"].metadata)


def one(context: StageContext) -> Rows:
    """Return the table ``weak``: drawn as `mrma` draws (MRMA, algorithm 1)."""
    public, params = context.metadata, context.params
    reports = context.rows("privatize", "directions")["direction"]
    count, size = params["train.count"], params["train.size"]
    samples = reports[
        draw_subsets(context.generator("draw"), len(reports), count, size)
    ]
    vectors, epsilon = directions_of(public), public["epsilon"]
    lines = [
        one_round_classifier(ReportMean.from_reports(sample), vectors, epsilon)
        for sample in samples
    ]
    coef, intercept = zip(*lines, strict=True)
    return {"weak": weak_columns(np.array(coef), np.array(intercept), size)}
