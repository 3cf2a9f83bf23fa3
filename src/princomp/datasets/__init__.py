"""Small data sets with a known truth: three published tables and seeded synthetic families.

Each function returns a frozen dataclass: the data first, then what is known about it. Nothing is downloaded, and the
global random state is neither read nor changed.
"""

from princomp.datasets.base import Dataset
from princomp.datasets.brain import Brain, make_brain
from princomp.datasets.matrices import (
    Decay,
    LowRankPlusSparse,
    SparseComponents,
    Spiked,
    make_decay,
    make_low_rank_plus_sparse,
    make_sparse_components,
    make_spiked,
)
from princomp.datasets.shapes import Circles, HeightWeight, SwissRoll, make_circles, make_height_weight, make_swiss_roll
from princomp.datasets.tables import Pitprops, Tobamovirus, Wine, load_pitprops, load_tobamovirus, load_wine
from princomp.datasets.video import Video, make_video

__all__ = [
    "Brain",
    "Circles",
    "Dataset",
    "Decay",
    "HeightWeight",
    "LowRankPlusSparse",
    "Pitprops",
    "SparseComponents",
    "Spiked",
    "SwissRoll",
    "Tobamovirus",
    "Video",
    "Wine",
    "load_pitprops",
    "load_tobamovirus",
    "load_wine",
    "make_brain",
    "make_circles",
    "make_decay",
    "make_height_weight",
    "make_low_rank_plus_sparse",
    "make_sparse_components",
    "make_spiked",
    "make_swiss_roll",
    "make_video",
]
