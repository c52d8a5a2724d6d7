"""The site and the README: code blocks, links, names."""
