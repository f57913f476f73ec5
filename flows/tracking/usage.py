"""Use of the machine while runs run, by MLflow's own monitors.

A run is logged when it has ended, so samples are kept until then. Where psutil is
missing, or MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING is false, there are none.
"""

from __future__ import annotations

import os
import time
from importlib import import_module
from importlib.util import find_spec
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlflow.entities import Metric

_MONITORS = {"cpu": "CPUMonitor", "disk": "DiskMonitor", "network": "NetworkMonitor"}
_FIRST_INTERVAL = 1.0  # seconds
_MAX_SAMPLES = 100  # then every other one goes, and the interval doubles


class UsageSampler(Thread):
    """A thread that samples processor, memory, disk and network."""

    def __init__(self) -> None:
        super().__init__(name="usage", daemon=True)
        self.samples: list[tuple[int, dict[str, float]]] = []
        self.monitors: list[Any] = [
            getattr(
                import_module(f"mlflow.system_metrics.metrics.{x}_monitor"), named
            )()
            for x, named in _MONITORS.items()
        ]

    def run(self) -> None:
        """Sample until the process ends."""
        interval = _FIRST_INTERVAL
        while True:
            values: dict[str, float] = {}
            for monitor in self.monitors:
                monitor.collect_metrics()
                values |= monitor.aggregate_metrics()
                monitor.clear_metrics()
            self.samples.append((int(time.time() * 1000), values))
            if len(self.samples) > _MAX_SAMPLES:
                self.samples, interval = self.samples[::2], 2 * interval
            time.sleep(interval)


_SAMPLERS: list[UsageSampler] = []  # the one of this process


def start_sampling() -> None:
    """Sample from now on, if MLflow can and may."""
    wanted = os.environ.get("MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING", "true")
    if find_spec("psutil") and wanted.lower() in {"true", "1"} and not _SAMPLERS:
        _SAMPLERS.append(UsageSampler())
        _SAMPLERS[0].start()


def usage_metrics(start: int, end: int) -> list[Metric]:
    """Return MLflow's system metrics between two moments in milliseconds."""
    from mlflow.entities import Metric

    samples = [
        sample
        for sampler in _SAMPLERS
        for sample in sampler.samples
        if start <= sample[0] <= end
    ]
    return [
        Metric(f"system/{name}", value, moment, step)
        for step, (moment, values) in enumerate(samples)
        for name, value in values.items()
    ]
