"""The laboratory: predict, simulate and compare, generic over every limit."""
