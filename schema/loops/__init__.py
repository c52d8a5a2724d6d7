"""What is known of a WHILE before it runs."""
