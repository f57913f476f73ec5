"""Books of the owner's side: what was released about each client."""
