"""M. Forina et al. (1988), PARVUS: an extendible package for data exploration, classification and correlation.

The wine data, from the UCI Machine Learning Repository, https://doi.org/10.24432/C5PC7J, licence CC BY 4.0.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from princomp.datasets.base import Dataset, Floats


@dataclass(frozen=True, eq=False, repr=False)
class Wine(Dataset):
    """Thirteen measurements of 178 wines of three cultivars (`load_wine`)."""

    X: Floats  # (178, 13)
    names: tuple[str, ...]  # 13 measurements
    cultivar: tuple[str, ...]  # 178: Barolo, Grignolino or Barbera
    path: Path  # the same as a CSV file


def load_wine() -> Wine:
    """Return the wine data of Forina et al. (1988): 178 wines, 13 chemical measurements, three cultivars.

    The units differ by orders of magnitude, so use ``scale=True``: otherwise the first component is proline alone.

    Returns
    -------
    Wine
        `X` (178, 13), `names`, `cultivar` (178 names), `path` of the CSV file.

    Examples
    --------
    >>> from princomp import PCA
    >>> from princomp.datasets import load_wine
    >>> wine = load_wine()
    >>> PCA(2, scale=True).fit(wine.X).explained_variance_ratio_.round(3)
    array([0.362, 0.192])
    """
    path = Path(__file__).with_name("wine.csv")
    with path.open(encoding="ascii", newline="") as file:
        header, *rows = csv.reader(file)
    X = np.array([row[2:] for row in rows], dtype=np.float64)
    return Wine(X=X, names=tuple(header[2:]), cultivar=tuple(row[1] for row in rows), path=path)
