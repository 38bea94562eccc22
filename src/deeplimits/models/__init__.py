"""Descriptions that theory and simulation both start from: definitions only."""
