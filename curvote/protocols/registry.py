"""Names of the protocols and the modules that declare them."""

PROTOCOLS = {
    "mrma": "curvote.protocols.mrma.protocol",
    "clean": "curvote.protocols.clean.protocol",
    "drift": "curvote.protocols.drift.protocol",
    "online": "curvote.protocols.online.protocol",
    "federated": "curvote.federation.protocol",
}
