"""Run benchmarks, keep what they measured, and say what has become worse.

``make bench [ONLY=NAME] [ARGS=--full]``. A ratio over 10 % worse than the last
committed line of its history, or over three times its own spread where that is more, is
measured a second time at once; worse again fails. The line is kept all the same: to
commit it is to accept it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

from benchmarks.draw_history import draw
from benchmarks.history import MEASURED, ROOT, Entry, committed, here, keep, measured


def names() -> list[str]:
    found = (ROOT / "benchmarks").glob("bench_*.py")
    return sorted(path.stem.removeprefix("bench_") for path in found)


def once(name: str, args: list[str]) -> tuple[int, Entry | None]:
    """Run a script; return its exit code and what it measured."""
    (MEASURED / f"{name}.json").unlink(missing_ok=True)
    print(f"== {name} {' '.join(args)}".rstrip(), flush=True)
    script = ROOT / "benchmarks" / f"bench_{name}.py"
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    code = subprocess.run(
        [sys.executable, script, *args],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path.rstrip(os.pathsep)},
        check=False,
    ).returncode
    made = measured(name)
    return code, made and replace(made, **here(" ".join(args)))


def judged(name: str, args: list[str]) -> bool:
    """Run a script, twice where it seems worse; True where all is as it should be."""
    for again in (False, True):
        code, made = once(name, args)
        if made is None:
            print(f"{name} measured nothing" if code else f"{name}: left out")
            return not code
        before = committed(name, made)
        worse = sorted(made.worse_than(before)) if before else []
        for words in worse:
            print(f"worse: {words}", flush=True)
        if not worse or again:
            break
    keep(name, made)
    return not code and not worse


def main(given: list[str]) -> int:
    end = given.index("--") if "--" in given else len(given)
    only, args = given[:end], given[end + 1 :]
    unknown = sorted(set(only) - set(names()))
    if unknown:
        print(f"no benchmark is called {', '.join(unknown)}: {', '.join(names())}")
        return 2
    failed = [name for name in only or names() if not judged(name, args)]
    draw()
    if failed:
        print(f"failed: {', '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
