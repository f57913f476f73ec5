"""Transfer between servers that hold raw records: one noised release of each.

task = Task(features=[("age", 20, 90)], classes=("no", "yes"), servers={"a": 1.0})
sent = release(task, "a", X, y)
model = combine(task, [sent], target="a")
"""

from typing import TYPE_CHECKING

from curvote.lazy import exports

__all__ = ["Level", "Model", "Release", "Task", "combine", "release"]

if TYPE_CHECKING:
    from curvote.transfer.combination import combine
    from curvote.transfer.model import Model
    from curvote.transfer.releasing import Release, release
    from curvote.transfer.task import Level, Task
else:
    __getattr__ = exports(
        __name__,
        {
            "Level": "task",
            "Model": "model",
            "Release": "releasing",
            "Task": "task",
            "combine": "combination",
            "release": "releasing",
        },
    )
