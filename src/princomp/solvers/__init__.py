"""Solvers: one algorithm per file, its reference on the first line and its objective next."""
