"""Judge a model by those it is used on: one noised answer of each.

codes = answers(truth, predicted, epsilon=1.0)
watch = Watch(epsilon=1.0, reference=0.9, margin=0.03)
watch.add(codes)
watch.interval(), watch.alarm
"""

from typing import TYPE_CHECKING

from curvote.base.lazy import exports

__all__ = ["Figure", "Question", "Watch", "answers"]

if TYPE_CHECKING:
    from curvote.systems.monitor.questions import Figure, Question
    from curvote.systems.monitor.watch import Watch, answers
else:
    __getattr__ = exports(
        __name__,
        {
            "Figure": "curvote.systems.monitor.questions",
            "Question": "curvote.systems.monitor.questions",
            "Watch": "curvote.systems.monitor.watch",
            "answers": "curvote.systems.monitor.watch",
        },
    )
