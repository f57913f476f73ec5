"""What a sender does: hold records, be asked, send."""
