"""Stored profiles of a model, one for each way to send a record."""

from __future__ import annotations

from collections.abc import Mapping

from curvote.chain.stage import StageContext
from curvote.protocols.utility.packing import Arrays, unpack_arrays
from curvote.utility.known import Profile, restore_profile
from curvote.utility.setting import Setting


def profile_arrays(profiles: Mapping[str, Profile]) -> Arrays:
    """Return the arrays of each profile, prefixed by the way to send."""
    return {
        f"{name_sent}/{name}": array
        for name_sent, profile in profiles.items()
        for name, array in profile.arrays().items()
    }


def read_profile(context: StageContext, name_sent: str, setting: Setting) -> Profile:
    """Return the profile that stage ``surface`` stored for one way to send."""
    stored = unpack_arrays(context.rows("surface", "known")["known"][0])
    start = f"{name_sent}/"
    arrays_of_sent = {name: a for name, a in stored.items() if name.startswith(start)}
    arrays = {name.removeprefix(start): array for name, array in arrays_of_sent.items()}
    return restore_profile(setting, arrays)
