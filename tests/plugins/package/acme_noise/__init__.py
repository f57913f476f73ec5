"""Somebody else's mechanism, learner and data set, for curvote."""
