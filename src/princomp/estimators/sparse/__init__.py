"""The formulations of sparse PCA, one per file: each turns a `Problem` into what it `Found`."""
