"""Artifacts: computed in blocks, committed by one rename, never changed."""
