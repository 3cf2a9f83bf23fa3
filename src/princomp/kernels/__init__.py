"""Kernels: small frozen dataclasses k(x, y) of two rows, with ``+`` and ``*``.

What a kernel must provide:

``points(A, about)``
    what it keeps of rows A (n, p), an array or CSR: a tuple of arrays with one entry per row (`Points`), so that norms,
    and whatever else belongs to a row alone, are found once and not for every pair. ``about`` is a point near the data,
    see `Kernel.points`.
``between(P, Q)``
    k of each pair, (n1, n2), from the points of both.
``own(P)``
    k(x, x), (n,).
``psd``
    whether every matrix of it is positive semidefinite: it is not taken to be, unless it says so.
``on(X)``
    the kernel that knows the training rows X: itself, unless it asks them (`NearestNeighbors`, `Normalized`).

`Kernel.evaluate` and `Kernel.diagonal` are made of these. `resolve` chooses by name. Kernels of two rows alone:
`simple`; kernels for which a row carries one more number, found among the training rows: `trained`.
"""

from princomp.kernels.base import Kernel, Points, Product, Sum, some
from princomp.kernels.choice import NAMES, bandwidth, resolve
from princomp.kernels.simple import Cosine, Function, Gaussian, Laplacian, Linear, Polynomial, Sigmoid
from princomp.kernels.trained import NearestNeighbors, Normalized

__all__ = [
    "NAMES",
    "Cosine",
    "Function",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "NearestNeighbors",
    "Normalized",
    "Points",
    "Polynomial",
    "Product",
    "Sigmoid",
    "Sum",
    "bandwidth",
    "resolve",
    "some",
]
