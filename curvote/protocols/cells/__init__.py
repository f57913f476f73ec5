"""What `counts`, `stump` and `tree` share: a noised (cell, class) answer a client."""
