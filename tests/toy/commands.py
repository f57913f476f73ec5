"""The toy's verb: the colour that the stored model gives a place."""

COMMANDS = {"colour": "curvote.toy.colour:colour"}
