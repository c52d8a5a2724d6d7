"""What makes written graphs smaller: tables, narrow constants, short names."""
