"""What the report says in words, and how it shows names that others chose."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

LONGEST = 120  # characters of a name that are shown

BOUNDS_MEAN = (
    "A bound holds for these data, and for a component given those before it: together other components may explain "
    "more, and another sample may choose other features."
)

# What would be invisible or break a line, turn the reading direction, or cannot be written as UTF-8.
UNSHOWABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


def shown(text: Any, longest: int = LONGEST) -> str:
    r"""Return the text as the page shows it: shortened in the middle, control characters written out.

    >>> shown("a\u202eb"), shown("x" * 1000, 9), shown("")
    ('a\\u202eb', 'xxxxxx…xxx', '(empty)')
    """
    text = str(text)
    if len(text) > longest:
        tail = longest // 3
        text = f"{text[: longest - tail]}…{text[-tail:]}"
    return UNSHOWABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text) if text.strip() else "(empty)"


def count(number: int, thing: str = "") -> str:
    r"""Return a number with its digits in groups, and the thing counted in the right form.

    >>> count(1, "sample"), count(50_000, "sample")
    ('1 sample', '50\u202f000 samples')
    """
    digits = f"{number:,}".replace(",", "\u202f") if number >= 10_000 else str(number)
    return f"{digits} {thing}{'' if number == 1 else 's'}" if thing else digits


def percent(share: float) -> str:
    r"""Return a share in per cent; one that is not whole never reads as 100 %, one that is not nothing never as 0 %.

    >>> [percent(share) for share in (0.553, 0.0553, 0.99996, 1.0, 1e-9, 0.0)]
    ['55\xa0%', '5.5\xa0%', 'over 99.9\xa0%', '100\xa0%', 'under 0.1\xa0%', '0\xa0%']
    """
    if share == 0:  # also -0.0
        return "0\xa0%"
    if share >= 1 - 1e-6:
        return "100\xa0%"
    if share >= 0.9995:
        return "over 99.9\xa0%"
    if 0 < share < 0.0005:
        return "under 0.1\xa0%"
    return f"{100 * share:.0f}\xa0%" if 0.0995 <= share < 0.985 else f"{100 * share:.1f}\xa0%"


def summary(n_samples: int, n_features: int | None, ratio: Array | None) -> str:
    """Say how large the data are, and how many components hold how much of their variance."""
    size = count(n_samples, "sample")
    if n_features is not None:
        size += f" of {count(n_features, 'feature')}"
    if ratio is None or not len(ratio):
        return f"{size}."
    if not ratio.any():
        return f"{size}. The data do not vary: every variance is 0, and the components are arbitrary."
    cumulative = np.cumsum(ratio, dtype=np.float64)
    held = [(number, percent(cumulative[number - 1])) for number in _milestones(cumulative)]
    number, share = held[0]
    first = f"{count(number, 'component')} hold{'s' if number == 1 else ''} {share} of the variance"
    return f"{size}. {', '.join([first, *(f'{number} hold {share}' for number, share in held[1:])])}."


def clusters(shares: list[float], k: int) -> str:
    r"""Say which components of a mixture belong to which cluster.

    >>> clusters([0.75, 0.25], 2)
    'The model has 2 clusters, of 75\xa0% and 25\xa0% of samples. Components 1 to 2 are those of the first, and so on.'
    """
    *others, last = [percent(share) for share in shares]
    parts = f"{', '.join(others)} and {last}" if others else last
    first = f"Components 1 to {k} are those" if k > 1 else "Component 1 is that"
    return f"The model has {count(len(shares), 'cluster')}, of {parts} of samples. {first} of the first, and so on."


def likelihood(log_likelihood: float, noise_variance: float) -> str:
    """Say how well a Gaussian model fits, and what it leaves to noise.

    >>> likelihood(-1245.9312, 1.6269)
    'Log-likelihood -1245.93, of all cells that are there; noise of standard deviation 1.275 in every feature.'
    """
    return (
        f"Log-likelihood {log_likelihood:.2f}, of all cells that are there; noise of standard deviation "
        f"{noise_variance**0.5:.4g} in every feature."
    )


def _milestones(cumulative: Array) -> list[int]:
    """Return numbers of components worth a word: two (what a scatter shows), those that reach 80 % and 95 %, or all."""
    k = len(cumulative)
    reach = [int(np.searchsorted(cumulative, share - 1e-9)) + 1 for share in (0.8, 0.95)]
    return sorted({min(2, k), *(min(number, k) for number in reach)})


def verdict(certificate: Any) -> str:
    """Say in one line whether the answer is certified."""
    if certificate.dominant is False:
        return "Not certified: something larger was left out."
    if not certificate.holds:
        return "Not certified: the residual is above the bound."
    if certificate.dominant:
        return "Certified: these are the leading components."
    if (proved := getattr(certificate, "proved", None)) is not None:
        return _verdict_by_component(proved, certificate.restriction())
    if certificate.scope == "global":
        return "Certified: no better answer exists."
    return "Certified as a local answer: no small step improves it."


def _verdict_by_component(proved: Array, restriction: str) -> str:
    if proved.all():
        better = f"no better components {restriction}," if restriction else "no better components"
        return f"Certified: {better} exist, each given those before it."
    if not proved.any():
        return "Certified within bounds: how much better a component could be is known."
    best = f"proved best among components {restriction}" if restriction else "proved best"
    return f"Certified: {int(proved.sum())} of {len(proved)} components are {best}, the others within bounds."


def assurance(certificate: Any) -> list[str]:
    """Say what the numbers of a certificate mean."""
    if hasattr(certificate, "sentences"):
        return [*certificate.sentences(), BOUNDS_MEAN]
    size = f"The residual is {certificate.residual:.1e}; up to {certificate.tol:.0e} was allowed."
    return [f"{size} {_residual(certificate)}", _meaning(certificate)]


def _residual(certificate: Any) -> str:
    if certificate.dominant is None:
        return "It says how far the answer is from the conditions that a best answer fulfils; 0 is exact."
    return (
        "It is the largest error in the equation S v = λ v that defines a component v with variance λ (S is the "
        "covariance matrix), relative to the largest variance: around 1e-15 is as exact as double precision gets."
    )


def _meaning(certificate: Any) -> str:
    if certificate.dominant:
        return (
            "Nothing larger was left out: no direction at right angles to these components holds more variance than "
            "the last one kept."
        )
    if certificate.dominant is False:
        return (
            "Something larger was left out: a direction at right angles to these components holds more variance than "
            'the last one kept. Fit again with solver="svd", or with more iterations.'
        )
    if certificate.scope == "global":
        return "For this problem a small residual means that no better answer exists."
    return (
        "For this problem a small residual means that no small step improves the answer; a better one far away is not "
        "ruled out."
    )
