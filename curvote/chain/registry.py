"""Registry of systems: one line each, the package that holds its ``system`` module."""

SYSTEMS = {
    "mrma": "curvote.systems.mrma",
    "direct": "curvote.systems.direct",
    "direct_two": "curvote.systems.direct.two",
    "direct_one_of": "curvote.systems.direct.one_of",
    "votes": "curvote.systems.mrma.votes",
    "majority": "curvote.systems.references",
    "mrma_classes": "curvote.systems.mrma.classes",
    "counts": "curvote.systems.cells.counts",
    "stump": "curvote.systems.cells.stump",
    "tree": "curvote.systems.cells.tree",
    "sgd": "curvote.systems.direct.sgd",
    "mrma_privunit": "curvote.systems.mrma.privunit",
    "auto": "curvote.systems.auto",
    "clean": "curvote.systems.references.clean",
    "volunteers": "curvote.systems.volunteers",
    "joined": "curvote.systems.volunteers.joined",
    "drift": "curvote.systems.mrma.drift",
    "online": "curvote.systems.online",
    "federated": "curvote.systems.federated",
    "transfer": "curvote.systems.transfer",
    "transfer_clean": "curvote.systems.transfer.clean",
    "labels": "curvote.systems.labels",
    "labels_two": "curvote.systems.labels.labels_two",
    "labels_clean": "curvote.systems.labels.labels_clean",
    "labels_regression": "curvote.systems.labels.labels_regression",
    "utility": "curvote.systems.utility",
    "utility_curves": "curvote.systems.utility.curves",
}

# What a pipeline is that names no protocol.
DEFAULT = "mrma"
