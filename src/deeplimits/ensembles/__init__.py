"""Finite random systems: data, networks, estimators and the ways they are trained."""
