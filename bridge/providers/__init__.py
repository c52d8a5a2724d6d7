"""Execution providers: sessions, delegates, and what providers compute wrongly."""
