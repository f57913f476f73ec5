"""How far a record can move before the answer changes, and what that bounds."""
