"""Client side: records, consent, and reports that are noised before they leave."""
