"""Point clouds on which plain PCA misleads: hidden groups, circles, a rolled-up sheet."""

from dataclasses import dataclass

import numpy as np

from princomp.datasets.base import Dataset, Floats, Integers, RandomState, at_least, not_negative


@dataclass(frozen=True, eq=False, repr=False)
class HeightWeight(Dataset):
    """Heights and weights of two kinds of athletes (`make_height_weight`)."""

    X: Floats  # (n_samples, 2), height in cm and weight in kg
    groups: Integers  # (n_samples,), 0 or 1: the hidden truth
    names: tuple[str, str]  # of the columns
    group_names: tuple[str, str]
    means: Floats  # (2, 2), true mean of each group
    direction: Floats  # (2,), unit vector: how height and weight go together inside each group


def make_height_weight(
    n_samples: int = 400, *, slope: float = 0.8, noise: float = 2.0, random_state: RandomState = 0
) -> HeightWeight:
    """Draw heights and weights of runners and weightlifters, and forget who is who.

    Inside each group the taller are heavier, by `slope` kg per cm. But the runners (even rows) are tall and light, the
    lifters (odd rows) short and heavy, so the first principal component of all rows together says that the taller are
    *lighter*: it has found the groups, not the relation. Invented numbers, not measurements.

    Parameters
    ----------
    n_samples : int, default=400
        Number of rows, half in each group.
    slope : float, default=0.8
        kg per cm inside each group.
    noise : float, default=2.0
        Standard deviation around the line, perpendicular to it. With 0 the points of a group lie exactly on its line.
    random_state : int, numpy.random.Generator or None, default=0
        Same integer, same data. None: new data at each call.

    Returns
    -------
    HeightWeight
        `X`, and the truth: `groups`, `means`, `direction`; `names`, `group_names`.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.datasets import make_height_weight
    >>> people = make_height_weight(200)
    >>> runners = people.X[people.groups == 0]
    >>> bool(np.corrcoef(runners.T)[0, 1] > 0.8), bool(np.corrcoef(people.X.T)[0, 1] < 0)
    (True, True)
    """
    at_least(2, n_samples=n_samples)
    not_negative(noise=noise)
    rng = np.random.default_rng(random_state)
    groups = np.arange(n_samples) % 2
    means = np.array([[181.0, 64.0], [166.0, 84.0]])
    direction = np.array([1.0, slope]) / np.hypot(1.0, slope)
    across = np.array([-direction[1], direction[0]])
    along = 7.0 * rng.standard_normal((n_samples, 1))
    aside = noise * rng.standard_normal((n_samples, 1))
    return HeightWeight(
        X=means[groups] + along * direction + aside * across,
        groups=groups,
        names=("height", "weight"),
        group_names=("runner", "lifter"),
        means=means,
        direction=direction,
    )


@dataclass(frozen=True, eq=False, repr=False)
class Circles(Dataset):
    """Two circles, one inside the other (`make_circles`)."""

    X: Floats  # (n_samples, 2)
    groups: Integers  # (n_samples,), 0 outer, 1 inner
    angle: Floats  # (n_samples,), place on the circle


def make_circles(
    n_samples: int = 400, *, factor: float = 0.3, noise: float = 0.05, random_state: RandomState = 0
) -> Circles:
    """Place points on two circles around the origin, of radius 1 and `factor`.

    No direction of the plane separates them: linear PCA does not help, kernel PCA does.

    Parameters
    ----------
    n_samples : int, default=400
        Number of rows; even rows lie on the outer circle, odd rows on the inner.
    factor : float, default=0.3
        Radius of the inner circle.
    noise : float, default=0.05
        Standard deviation of noise on both coordinates.
    random_state : int, numpy.random.Generator or None, default=0
        Same integer, same data. None: new data at each call.

    Returns
    -------
    Circles
        `X`, `groups` (0 outer, 1 inner), `angle`.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.datasets import make_circles
    >>> circles = make_circles(100, noise=0)
    >>> radius = np.hypot(*circles.X.T)
    >>> [round(float(radius[circles.groups == g].mean()), 3) for g in (0, 1)]
    [1.0, 0.3]
    """
    at_least(2, n_samples=n_samples)
    not_negative(factor=factor, noise=noise)
    rng = np.random.default_rng(random_state)
    groups = np.arange(n_samples) % 2
    angle = 2 * np.pi * rng.random(n_samples)
    radius = np.where(groups == 0, 1.0, factor)
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    X += noise * rng.standard_normal(X.shape)
    return Circles(X=X, groups=groups, angle=angle)


@dataclass(frozen=True, eq=False, repr=False)
class SwissRoll(Dataset):
    """A flat sheet rolled up in space (`make_swiss_roll`)."""

    X: Floats  # (n_samples, 3)
    angle: Floats  # (n_samples,), place along the spiral
    sheet: Floats  # (n_samples, 2), the unrolled truth: length along the spiral, height


def make_swiss_roll(n_samples: int = 1000, *, noise: float = 0.0, random_state: RandomState = 0) -> SwissRoll:
    """Roll a sheet up: X = (t cos t, h, t sin t), t from 1.5 pi to 4.5 pi, h from 0 to 21.

    Two numbers describe each point, but no plane holds them: linear PCA needs all three.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows.
    noise : float, default=0.0
        Standard deviation of noise on the three coordinates.
    random_state : int, numpy.random.Generator or None, default=0
        Same integer, same data. None: new data at each call.

    Returns
    -------
    SwissRoll
        `X`, `angle`, and `sheet`, the unrolled coordinates.

    Examples
    --------
    >>> from princomp.datasets import make_swiss_roll
    >>> roll = make_swiss_roll(100)
    >>> roll.X.shape, roll.sheet.shape
    ((100, 3), (100, 2))
    """
    at_least(1, n_samples=n_samples)
    not_negative(noise=noise)
    rng = np.random.default_rng(random_state)
    t = 1.5 * np.pi * (1 + 2 * rng.random(n_samples))
    height = 21 * rng.random(n_samples)
    X = np.column_stack([t * np.cos(t), height, t * np.sin(t)])
    X += noise * rng.standard_normal(X.shape)
    length = (t * np.sqrt(1 + t**2) + np.arcsinh(t)) / 2  # arc length of the spiral r = t
    return SwissRoll(X=X, angle=t, sheet=np.column_stack([length, height]))
