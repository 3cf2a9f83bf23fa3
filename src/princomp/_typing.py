"""The one name for an array in signatures; shapes are said in words."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
