"""Robust PCA in rooms that stand on each other: one column, a covariance matrix, then components."""
