"""Estimators that interpolate the data and still generalize."""
