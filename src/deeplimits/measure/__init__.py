"""Instruments for finite systems."""
