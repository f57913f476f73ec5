"""Monitor: any deployed model judged by those it is used on, one noised answer each."""
