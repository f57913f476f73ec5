"""Registry of systems: one line each, the package that holds its ``system`` module.

A package of several systems names them in ``SYSTEMS`` of that module, and what each
asks for in ``MESSAGES_BY_SYSTEM`` of its ``messages``; one of a single system has
``SYSTEM`` and ``MESSAGES``.
"""

from curvote.base.registry import Registry

_PLACES = {
    "mrma": "curvote.systems.mrma",
    "direct": "curvote.systems.direct",
    "direct_two": "curvote.systems.direct",
    "direct_one_of": "curvote.systems.direct",
    "votes": "curvote.systems.mrma",
    "majority": "curvote.systems.references",
    "mrma_classes": "curvote.systems.mrma",
    "counts": "curvote.systems.cells",
    "stump": "curvote.systems.cells",
    "tree": "curvote.systems.cells",
    "sgd": "curvote.systems.direct",
    "mrma_privunit": "curvote.systems.mrma.privunit",
    "auto": "curvote.systems.mrma",
    "clean": "curvote.systems.references",
    "functional": "curvote.systems.references",
    "volunteers": "curvote.systems.volunteers",
    "joined": "curvote.systems.volunteers",
    "whitened": "curvote.systems.volunteers",
    "pilot": "curvote.systems.pilot",
    "drift": "curvote.systems.mrma",
    "online": "curvote.systems.online",
    "federated": "curvote.systems.federated",
    "transfer": "curvote.systems.transfer",
    "transfer_clean": "curvote.systems.transfer",
    "labels": "curvote.systems.labels",
    "labels_two": "curvote.systems.labels",
    "labels_clean": "curvote.systems.labels",
    "labels_regression": "curvote.systems.labels",
    "utility": "curvote.systems.utility",
    "utility_curves": "curvote.systems.utility",
    "monitor": "curvote.systems.monitor",
}
SYSTEMS = Registry("protocol", _PLACES)

# What a pipeline is that names no protocol.
DEFAULT = "mrma"
