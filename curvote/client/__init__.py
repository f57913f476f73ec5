"""What runs on the owner's side: reports and votes, noised before they leave."""
