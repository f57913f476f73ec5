"""No training: everybody judges one random direction, and votes weigh them."""
