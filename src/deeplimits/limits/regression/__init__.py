"""Exact risks in high dimension."""
