"""A clip that nobody filmed: shapes that move over a background that flickers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from princomp.datasets.base import Dataset, Floats, RandomState, at_least, not_negative

LEAST, MOST = 0.16, 0.26  # size of a shape, as a share of the shorter side
DARK, RANGE = 60.0, 110.0  # of the still scene, in levels of grey from 0 to 255
CONTRAST = 70.0  # a shape differs from what is behind it by this at least, in levels of grey
EDGE = 1.5  # a shape comes in from outside and leaves: how far its way goes, in its own sizes, beyond the frame


@dataclass(frozen=True, eq=False, repr=False)
class Video(Dataset):
    """A clip whose background is known (`make_video`)."""

    X: Floats  # (n_frames, pixels), a row for each frame: row.reshape(shape) is the image
    shape: tuple[int, int]  # height, width
    background: Floats  # (n_frames, pixels), of rank 3: X without the shapes
    moving: NDArray[np.bool_]  # (n_frames, pixels), where a shape is


def make_video(
    n_frames: int = 80,
    *,
    shape: tuple[int, int] = (48, 64),
    n_shapes: int = 3,
    flicker: float = 0.15,
    noise: float = 0.0,
    random_state: RandomState = 0,
) -> Video:
    """Draw a clip of a still scene, in which lights flicker, and of shapes that cross it.

    A frame is background + noise * E, E standard normal, but where a shape is: there it is the shape's own grey. The
    background of frame t is a scene, plus two lights, each a soft spot times its own brightness at t: of rank 3. With
    the default flicker and without noise pixels are numbers from 0 to 255.

    Parameters
    ----------
    n_frames : int, default=80
        Number of frames, the rows.
    shape : (int, int), default=(48, 64)
        Height and width of a frame.
    n_shapes : int, default=3
        Discs and boxes, each on a straight way of its own.
    flicker : float, default=0.15
        Standard deviation of the lights, as a share of the range of the scene.
    noise : float, default=0.0
        Standard deviation of noise, in levels of grey.
    random_state : int, numpy.random.Generator or None, default=0
        Same integer, same data. None: new data at each call.

    Returns
    -------
    Video
        `X`, `shape`, and the truth: `background`, `moving`.

    Examples
    --------
    >>> from princomp.datasets import make_video
    >>> clip = make_video(20)
    >>> clip.X.shape, clip.shape, bool((clip.X == clip.background)[~clip.moving].all())
    ((20, 3072), (48, 64), True)
    """
    at_least(2, n_frames=n_frames)
    at_least(8, height=shape[0], width=shape[1])
    at_least(0, n_shapes=n_shapes)
    not_negative(flicker=flicker, noise=noise)
    rng = np.random.default_rng(random_state)
    down, across = np.mgrid[: shape[0], : shape[1]].astype(np.float64)
    background = _scene(rng, n_frames, down, across, flicker)
    X = background + noise * rng.standard_normal(background.shape)
    moving = np.zeros(X.shape, bool)
    for number in range(n_shapes):
        inside = _crossing(rng, n_frames, down, across, round_one=number % 2 == 0)
        behind = background[inside].mean() if inside.any() else 128.0
        away = rng.uniform(CONTRAST, 1.6 * CONTRAST)
        X[inside] = behind + (away if behind < 128.0 else -away)
        moving |= inside
    return Video(X=X, shape=(int(shape[0]), int(shape[1])), background=background, moving=moving)


def _scene(rng: np.random.Generator, n: int, down: Floats, across: Floats, flicker: float) -> Floats:
    """Return the backgrounds of all frames, (n, pixels)."""
    height, width = down.shape
    waves = sum(
        np.cos(2 * np.pi * (rng.uniform(-2, 2) * down / height + rng.uniform(-2, 2) * across / width) + phase)
        for phase in rng.uniform(0, 2 * np.pi, 6)
    )
    walls = ((down > 0.72 * height) * 1.5) - ((abs(across - 0.25 * width) < 0.07 * width) & (down > 0.3 * height)) * 2.0
    still = np.ravel(waves / 2 + walls)
    still = DARK + RANGE * (still - still.min()) / np.ptp(still)
    found = np.tile(still, (n, 1))
    for _ in range(2):
        top, left = rng.uniform(0.1, 0.9, 2) * (height, width)
        spot = np.exp(-((down - top) ** 2 + (across - left) ** 2) / (0.25 * max(height, width)) ** 2)
        bright = np.sqrt(3.0) * rng.uniform(-1, 1, n)  # from frame to frame: lamps, not the sun
        found += flicker * RANGE * np.outer(bright, spot)
    return found


def _crossing(rng: np.random.Generator, n: int, down: Floats, across: Floats, *, round_one: bool) -> NDArray[np.bool_]:
    """Return where a shape is that crosses the frame, (n, pixels)."""
    sides = np.array(down.shape, dtype=np.float64)
    size = rng.uniform(LEAST, MOST) * sides.min() / 2
    beyond = EDGE * size
    start = np.array([rng.uniform(0.15, 0.85) * sides[0], -beyond])
    end = np.array([rng.uniform(0.15, 0.85) * sides[0], sides[1] + beyond])
    if rng.random() < 0.5:
        start, end = end, start
    places = start + np.linspace(0, 1, n)[:, None] * (end - start)
    y, x = (np.ravel(each)[None, :] - places[:, [axis]] for axis, each in enumerate((down, across)))
    return np.hypot(x, y) <= size if round_one else np.maximum(abs(x), abs(y) * 1.3) <= 0.9 * size
