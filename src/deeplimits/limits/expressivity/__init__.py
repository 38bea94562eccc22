"""What networks can express: paths, regions, entropy."""
