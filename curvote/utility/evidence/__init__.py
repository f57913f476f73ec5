"""Statistical evidence on a share: intervals, sequences, pools."""
