"""What only a page of private labels shows."""
