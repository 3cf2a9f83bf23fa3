"""Published tables: wines, viruses, pit props."""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from princomp.datasets.base import Dataset, Floats


# M. Forina et al. (1988), PARVUS: an extendible package for data exploration, classification and correlation.
# The wine data, from the UCI Machine Learning Repository, https://doi.org/10.24432/C5PC7J, licence CC BY 4.0.
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
    path, (header, *rows) = _table("wine.csv")
    X = np.array([row[2:] for row in rows], dtype=np.float64)
    return Wine(X=X, names=tuple(header[2:]), cultivar=tuple(row[1] for row in rows), path=path)


# C. Fauquet et al. (1988), counts of amino acids in the coat proteins of rod-shaped plant viruses: the Tobamoviruses.
# Table as used by Ripley, Pattern Recognition and Neural Networks (1996), and by Tipping & Bishop, Probabilistic
# Principal Component Analysis, J. R. Statist. Soc. B 61 (1999). The numbers are published measurements.
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
    path, (header, *rows) = _table("tobamovirus.csv")
    return Tobamovirus(X=np.array([row[1:] for row in rows], dtype=np.float64), names=tuple(header[1:]), path=path)


# J. N. R. Jeffers (1967), Two case studies in the application of principal component analysis, Applied Statistics
# 16(3), 225-236: below the diagonal of the correlation matrix, in thousandths.
_PITPROPS = """
topdiam
length    954
moist     364  297
testsg    342  284  882
ovensg   -129 -118 -148  220
ringtop   313  291  153  381  364
ringbut   496  503  -29  174  296  813
bowmax    424  419  -54  -59    4   90  372
bowdist   592  648  125  137  -39  211  465  482
whorls    545  569  -81  -14   37  274  679  557  526
clear      84   76  162   97  -91  -36 -113   61   85 -319
knots     -19  -36  220  169 -145   24 -232 -357 -127 -368   29
diaknot   134  144  126   15 -208 -329 -424 -202  -76 -291    7  184
"""


@dataclass(frozen=True, eq=False, repr=False)
class Pitprops(Dataset):
    """Correlations of 13 measurements on 180 pit props (`load_pitprops`)."""

    correlation: Floats  # (13, 13)
    names: tuple[str, ...]  # 13 variable names
    n_samples: int  # 180: only the correlations were published, not the 180 rows


def load_pitprops() -> Pitprops:
    """Return the pit prop correlations of Jeffers (1967), the classic of sparse PCA.

    Thirteen measurements (diameters, density, rings, knots ...) of 180 pit props, the timbers that held up mine
    galleries. The rows were never published, only their correlation matrix, so use `fit_covariance` rather than `fit`.

    Returns
    -------
    Pitprops
        `correlation` (13, 13), `names` (13 strings), `n_samples` (180).

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.datasets import load_pitprops
    >>> pitprops = load_pitprops()
    >>> pitprops.names[:3]
    ('topdiam', 'length', 'moist')
    >>> np.linalg.eigvalsh(pitprops.correlation)[::-1][:3].round(3).tolist()
    [4.219, 2.378, 1.878]
    """
    rows = [line.split() for line in _PITPROPS.split("\n") if line]
    correlation = np.eye(len(rows))
    for i, (_, *values) in enumerate(rows):
        correlation[i, :i] = correlation[:i, i] = [int(value) / 1000 for value in values]
    return Pitprops(correlation=correlation, names=tuple(row[0] for row in rows), n_samples=180)


def _table(name: str) -> tuple[Path, list[list[str]]]:
    """Return the path of a CSV file in this folder, and its rows, the header first."""
    path = Path(__file__).with_name(name)
    with path.open(encoding="ascii", newline="") as file:
        return path, list(csv.reader(file))
