"""The protocol that public facts call for: an arm of `direct`, or another."""
