"""What a robust PCA says of itself."""

from typing import Any

from princomp.estimators.description import Description, usual_description


def describe_robust(estimator: Any) -> Description:
    """Return what is said of a robust PCA."""
    return usual_description(estimator)
