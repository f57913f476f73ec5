"""System `transfer_clean`: learning from all servers' records without privacy."""
