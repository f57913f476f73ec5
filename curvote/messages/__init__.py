"""Messages: what systems share about what leaves a client."""
