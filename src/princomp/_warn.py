"""Warnings that point at the user's line, however deep the code is that has something to say."""

import sys
import warnings

# Their frames are passed over: the user's line is outside, also where scikit-learn calls us.
INSIDE = ("princomp", "sklearn", "joblib")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, as if the line had that has called into this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INSIDE:
        frame = frame.f_back
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )
