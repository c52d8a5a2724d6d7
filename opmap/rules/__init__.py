"""What makes graphs faster: rules in one table, in the order in which they are asked."""
