"""The one name for an array in signatures; shapes are said in words."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
