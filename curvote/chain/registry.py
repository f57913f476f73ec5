"""Systems by name, one line each, and the tasks that their documents hold."""

SYSTEMS = {
    "mrma": "curvote.protocols.mrma",
    "direct": "curvote.protocols.direct",
    "direct_two": "curvote.protocols.direct_two",
    "direct_one_of": "curvote.protocols.direct_one_of",
    "votes": "curvote.protocols.votes",
    "majority": "curvote.protocols.majority",
    "mrma_classes": "curvote.protocols.mrma_classes",
    "counts": "curvote.protocols.counts",
    "stump": "curvote.protocols.stump",
    "tree": "curvote.protocols.tree",
    "sgd": "curvote.protocols.sgd",
    "mrma_privunit": "curvote.protocols.mrma_privunit",
    "auto": "curvote.protocols.auto",
    "clean": "curvote.protocols.non_private",
    "volunteers": "curvote.protocols.volunteers",
    "joined": "curvote.protocols.joined",
    "drift": "curvote.protocols.noise_check",
    "online": "curvote.protocols.online",
    "federated": "curvote.federation",
    "transfer": "curvote.protocols.transfer",
    "transfer_clean": "curvote.protocols.transfer.clean",
    "labels": "curvote.protocols.labels",
    "labels_two": "curvote.protocols.labels.two",
    "labels_clean": "curvote.protocols.labels.clean",
    "labels_regression": "curvote.protocols.labels.regression",
    "utility": "curvote.protocols.utility",
    "utility_curves": "curvote.protocols.utility.curves",
}

# What a pipeline is that names no protocol.
DEFAULT = "mrma"
