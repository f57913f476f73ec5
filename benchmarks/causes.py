"""Processor seconds of one command of curvote, by their cause.

Run as ``python -m benchmarks.causes WORDS...`` in a project, such as ``demo`` or ``run
simulated --workers 1``; the last line is a JSON object of seconds by cause. A thread
samples the stacks of all others and counts what the clock of each has gone on; what
child processes took (Prefect's server, and workers) is known when they have ended.
"""

from __future__ import annotations

import json
import resource
import sys
import threading
import time
from collections import Counter
from types import FrameType
from typing import Final

# The first that is part of a file's name, from the outermost call on.
_ROOMS: Final = {
    "curvote/flows/tracking/": "MLflow",
    "curvote/report/": "page",
    "curvote/pipeline/run/execution": "storage",
    "curvote/pipeline/run/results": "scores",
    "curvote/pipeline/": "plan",
}
_STAGES: Final = ("curvote/chain/stage.py", "curvote/systems/")
_SECONDS: Final = 0.002


def find_cause(frame: FrameType | None) -> str:
    """Return the cause of what a thread does: an import, or a room of curvote."""
    files: list[str] = []
    while frame is not None:
        files.insert(0, frame.f_code.co_filename)
        frame = frame.f_back
    if "<frozen importlib._bootstrap>" in files:
        return "imports"
    rooms = (_ROOMS[part] for file in files for part in _ROOMS if part in file)
    room = next(rooms, "Prefect" if any("/prefect/" in f for f in files) else "other")
    if room != "storage":
        return room
    inside = any(part in file for file in files for part in _STAGES)
    stored = any("curvote/pipeline/store/" in file for file in files)
    return "functions" if inside and not stored else room


def thread_clock(thread: threading.Thread) -> float | None:
    """Return the CPU seconds of a thread, None: it has ended.

    The clock's number is that of Linux for a thread: ``pthread_getcpuclockid`` would
    read what an ended thread has left.
    """
    try:
        return time.clock_gettime((~(thread.native_id or 0) << 3) | 6)
    except OSError:
        return None


def main(words: list[str]) -> None:
    """Run the command line under the sampler; print seconds by cause."""
    seconds: Counter[str] = Counter()
    over = threading.Event()

    def sample() -> None:
        clocks: dict[int | None, float] = {}
        while not over.wait(_SECONDS):
            frames = sys._current_frames()  # noqa: SLF001 - there is no other way
            for thread in threading.enumerate():
                now, frame = thread_clock(thread), frames.get(thread.ident or 0)
                if now is None or frame is None or thread is sampler:
                    continue
                spent = now - clocks.get(thread.native_id, 0.0)
                clocks[thread.native_id] = now
                seconds[find_cause(frame)] += spent

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    sys.argv = ["curvote", *words]
    try:
        from curvote.cli.__main__ import main as command

        command()
    except SystemExit as end:
        if end.code:
            raise
    finally:
        over.set()
        sampler.join()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds["processes"] = children.ru_utime + children.ru_stime
    print(json.dumps({name: round(value, 2) for name, value in seconds.most_common()}))


if __name__ == "__main__":
    main(sys.argv[1:])
