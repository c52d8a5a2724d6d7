"""Many rows through one model: reading, batches, results, and the engines that share the work."""
