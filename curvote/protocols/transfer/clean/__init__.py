"""No privacy at all: what the target could learn if it saw everybody's records."""
