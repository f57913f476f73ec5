"""Documents between server and clients: tasks, envelopes, signatures."""
