"""What a coder provides."""

from typing import Any, Protocol

from princomp._typing import Array


class Coder(Protocol):
    """A rule that makes a code of a row: a small frozen dataclass whose fields are its parameters.

    ``gram`` has one matrix for all rows, (1, K, K), or one for each, (m, K, K): rows with missing or weighted cells
    have their own. It is symmetric; its diagonal are the squared norms of the atoms, which may be 0.
    """

    @property
    def optimal(self) -> bool:
        """Whether codes are minimisers (up to ``tol``): a new code is then never worse than an old one."""

    def code(self, gram: Array, correlations: Array, squares: Array, start: Any = None) -> Any:
        """Return the codes of m rows, a CSR array (m, K), sorted indices, in the precision of ``correlations``.

        ``correlations`` (m, K) has D x, ``squares`` (m,) |x|^2; ``start`` may be codes (CSR, m x K) to begin with.
        """

    def penalties(self, codes: Any) -> Array:
        """Return h(a) of each row of a CSR array, (m,), float64."""
