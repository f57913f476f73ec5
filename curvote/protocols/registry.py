"""Names of the protocols and the modules that declare them."""

PROTOCOLS = {"mrma": "curvote.protocols.mrma.protocol"}
