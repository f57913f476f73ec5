"""Cell systems `counts`, `stump` and `tree`: a noised cell and class a client."""
