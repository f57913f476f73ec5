"""What commands and runs say: lines, tables, bars, JSON."""
