"""Federation of servers: each learns, they exchange, clients judge."""
