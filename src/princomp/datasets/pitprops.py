"""J. N. R. Jeffers (1967), Two case studies in the application of principal component analysis.

Applied Statistics 16(3), 225-236.
"""

from dataclasses import dataclass

import numpy as np

from princomp.datasets.base import Dataset, Floats

# Below the diagonal of the correlation matrix, in thousandths.
_TABLE = """
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

    Thirteen measurements (diameters, density, rings, knots ...) of 180 pit props, the timbers
    that held up mine galleries. The rows were never published, only their correlation matrix,
    so use `fit_covariance` rather than `fit`.

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
    rows = [line.split() for line in _TABLE.split("\n") if line]
    correlation = np.eye(len(rows))
    for i, (_, *values) in enumerate(rows):
        correlation[i, :i] = correlation[:i, i] = [int(value) / 1000 for value in values]
    return Pitprops(correlation=correlation, names=tuple(row[0] for row in rows), n_samples=180)
