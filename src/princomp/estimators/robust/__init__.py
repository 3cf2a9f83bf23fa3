"""The methods of robust PCA, one per file: each takes a `RobustProblem` and returns a `RobustFound`."""
