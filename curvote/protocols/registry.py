"""Names of the protocols and the modules that declare them."""

PROTOCOLS = {
    "mrma": "curvote.protocols.mrma.protocol",
    "direct": "curvote.protocols.direct.protocol",
    "direct_two": "curvote.protocols.direct.two_rounds",
    "votes": "curvote.protocols.votes.protocol",
    "majority": "curvote.protocols.majority.protocol",
    "mrma_privunit": "curvote.protocols.mrma_privunit.protocol",
    "clean": "curvote.protocols.clean.protocol",
    "drift": "curvote.protocols.drift.protocol",
    "online": "curvote.protocols.online.protocol",
    "federated": "curvote.federation.protocol",
}
