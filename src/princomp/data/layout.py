"""Where columns lie, if they are pixels of an image or voxels of a volume: so components can be drawn there."""

import itertools
import math
from dataclasses import dataclass

import numpy as np

from princomp._typing import Array

OFF = 1e-3  # of a voxel: grids that differ by less are one


@dataclass(frozen=True)
class ImageLayout:
    """Pixels, row by row from the top."""

    shape: tuple[int, ...]  # (height, width), or (height, width, 3) of colours

    @property
    def size(self) -> int:
        """Number of columns."""
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class VoxelLayout:
    """Voxels inside a mask, in the order of ``volume[mask]``."""

    mask: Array  # (x, y, z) of bool
    affine: Array  # (4, 4): from the numbers of a voxel to millimetres
    space: int = 1  # what these are relative to, as NIfTI counts: 0 unknown, 1 scanner, 2 another scan, 4 MNI

    @property
    def size(self) -> int:
        """Number of voxels inside."""
        return int(np.count_nonzero(self.mask))

    def volume(self, values: Array) -> Array:
        """Return (size,) numbers in their places, 0 outside of the mask."""
        whole = np.zeros(self.mask.shape, np.asarray(values).dtype)
        whole[self.mask] = values
        return whole

    def differs(self, shape: tuple[int, ...], affine: Array) -> str:
        """Say how another grid differs from this one; nothing if it does not."""
        if tuple(shape) != self.mask.shape:
            ours, theirs = (" x ".join(map(str, sides)) for sides in (self.mask.shape, shape))
            return f"{theirs} voxels, not {ours}"
        edge = np.linalg.norm(self.affine[:3, :3], axis=0).min()
        if np.abs(self.affine - affine).max() > OFF * edge:
            return "its voxels lie elsewhere (another affine)"
        return ""

    def upright(self, volume: Array) -> Array:
        """Return a volume turned so that axes go from left to right, from back to front, and up (whole turns only)."""
        order, backwards = self._axes()
        turned = np.transpose(volume, order)
        return turned[tuple(slice(None, None, -1 if back else None) for back in backwards)]

    def spacing(self) -> tuple[float, float, float]:
        """Return the edges of a voxel in millimetres, as `upright` turns them."""
        edges = np.linalg.norm(self.affine[:3, :3], axis=0)
        x, y, z = (float(edges[axis]) or 1.0 for axis in self._axes()[0])
        return x, y, z

    def height(self, number: int) -> float:
        """Return the height in millimetres of the slice with this number, of a volume that is upright."""
        order, backwards = self._axes()
        place = (np.array(self.mask.shape) - 1) / 2.0
        place[order[2]] = self.mask.shape[order[2]] - 1 - number if backwards[2] else number
        return float(self.affine[2, :3] @ place + self.affine[2, 3])

    def _axes(self) -> tuple[tuple[int, ...], tuple[bool, ...]]:
        """Return which voxel axis is nearest to each of the three directions, and whether it goes the other way."""
        edges = np.linalg.norm(self.affine[:3, :3], axis=0)
        along = self.affine[:3, :3] / np.where(edges > 0, edges, 1.0)
        best = max(
            itertools.permutations(range(3)), key=lambda order: sum(abs(along[i, j]) for i, j in enumerate(order))
        )
        return best, tuple(bool(along[i, j] < 0) for i, j in enumerate(best))


Layout = ImageLayout | VoxelLayout
