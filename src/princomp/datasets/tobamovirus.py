"""C. Fauquet et al. (1988), counts of amino acids in the coat proteins of rod-shaped plant viruses: the Tobamoviruses.

Table as used by Ripley, Pattern Recognition and Neural Networks (1996), and by Tipping & Bishop, Probabilistic
Principal Component Analysis, J. R. Statist. Soc. B 61 (1999). The numbers are published measurements.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from princomp.datasets.base import Dataset, Floats


@dataclass(frozen=True, eq=False, repr=False)
class Tobamovirus(Dataset):
    """Eighteen counts of amino acids for 38 viruses (`load_tobamovirus`)."""

    X: Floats  # (38, 18)
    names: tuple[str, ...]  # x1 ... x18
    path: Path  # the same as a CSV file


def load_tobamovirus() -> Tobamovirus:
    """Return the Tobamovirus data: 38 viruses, 18 counts of amino acid residues per molecule of coat protein.

    The example of Tipping & Bishop (1999) for probabilistic PCA, whole and with 136 cells taken out.

    Returns
    -------
    Tobamovirus
        `X` (38, 18), `names`, `path` of the CSV file.

    Examples
    --------
    >>> from princomp.datasets import load_tobamovirus
    >>> load_tobamovirus().X.shape
    (38, 18)
    """
    path = Path(__file__).with_name("tobamovirus.csv")
    with path.open(encoding="ascii", newline="") as file:
        header, *rows = csv.reader(file)
    return Tobamovirus(X=np.array([row[1:] for row in rows], dtype=np.float64), names=tuple(header[1:]), path=path)
