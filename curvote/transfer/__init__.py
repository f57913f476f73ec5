"""Transfer between servers that hold raw records: one noised release of each.

task = Task(features=[("age", 20, 90)], classes=("no", "yes"), servers={"a": 1.0})
sent = release(task, "a", X, y)
model = combine(task, [sent], target="a")
"""

from typing import TYPE_CHECKING

from curvote.base.lazy import exports

__all__ = ["Level", "Model", "Release", "Task", "combine", "release"]

if TYPE_CHECKING:
    from curvote.systems.transfer.method.model import Model, combine
    from curvote.systems.transfer.method.release import Release, release
    from curvote.systems.transfer.method.task import Level, Task
else:
    __getattr__ = exports(
        __name__,
        {
            "Level": "curvote.systems.transfer.method.task",
            "Model": "curvote.systems.transfer.method.model",
            "Release": "curvote.systems.transfer.method.release",
            "Task": "curvote.systems.transfer.method.task",
            "combine": "curvote.systems.transfer.method.model",
            "release": "curvote.systems.transfer.method.release",
        },
    )
