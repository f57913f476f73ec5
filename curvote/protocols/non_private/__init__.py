"""No privacy at all: what a learner could do with the clients' own numbers."""
