"""What draws say of a share: intervals, sequences, pools."""
