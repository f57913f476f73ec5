"""Use of the machine while runs run, by MLflow's own monitors.

A run is logged when it has ended, so samples are kept until then. Where psutil is
missing, or MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING is false, there are none.
"""

import os
import time
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from threading import Thread
from typing import Any

_MONITORS = {
    "cpu_monitor": "CPUMonitor",
    "disk_monitor": "DiskMonitor",
    "network_monitor": "NetworkMonitor",
}
_MAX_SAMPLES = 100  # then every other one goes, and the interval doubles
_SAMPLES: list[tuple[int, dict[str, float]]] = []  # of this process


@cache
def start_sampling() -> None:
    """Sample the machine from now on, if MLflow can and may."""
    wanted = os.environ.get("MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING", "true").lower()
    if find_spec("psutil") and wanted in {"true", "1"}:
        # Each by itself: `SystemMetricsMonitor` would open a database, or make it.
        monitors = [
            getattr(import_module(f"mlflow.system_metrics.metrics.{module}"), name)()
            for module, name in _MONITORS.items()
        ]
        Thread(target=_keep_sampling, args=(monitors,), daemon=True).start()


def usage_between(start: int, end: int) -> list[tuple[int, dict[str, float]]]:
    """Return samples between two moments in milliseconds, each with its moment."""
    return [(moment, values) for moment, values in _SAMPLES if start <= moment <= end]


def _keep_sampling(monitors: list[Any]) -> None:
    interval = 1.0  # seconds
    while True:
        values: dict[str, float] = {}
        for monitor in monitors:
            monitor.collect_metrics()
            values |= monitor.aggregate_metrics()
            monitor.clear_metrics()
        _SAMPLES.append((int(time.time() * 1000), values))
        if len(_SAMPLES) > _MAX_SAMPLES:
            del _SAMPLES[::2]
            interval *= 2
        time.sleep(interval)
