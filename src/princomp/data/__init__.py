"""How X is stored, and what is counted over it: nothing here knows of PCA.

`as_rows` turns whatever the user has into `Rows`, `read` does so with files; `Centered` looks at rows less their mean;
`statistics` holds the sums that solvers are made of.
"""

from princomp.data.centered import Centered
from princomp.data.files import read
from princomp.data.reading import DataError
from princomp.data.rows import Rows
from princomp.data.source import as_rows

__all__ = ["Centered", "DataError", "Rows", "as_rows", "read"]
