"""The stages that two rounds have of their own."""
