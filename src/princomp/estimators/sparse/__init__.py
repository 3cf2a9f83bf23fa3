"""The formulations of sparse PCA, one per file: each turns a `SparseProblem` into a `SparseFound`."""
