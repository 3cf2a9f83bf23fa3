"""Certificates: how good an answer is, measured from data and answer alone, whichever solver gave it."""

from princomp.certificates.cardinality import (
    CardinalityCertificate,
    Kind,
    Leaves,
    Verification,
    nonnegative_value,
    verify,
)
from princomp.certificates.dictionary import dictionary_kkt, slope_scale
from princomp.certificates.principal import deflated_norm, principal_components, spectral

__all__ = [
    "CardinalityCertificate",
    "Kind",
    "Leaves",
    "Verification",
    "deflated_norm",
    "dictionary_kkt",
    "nonnegative_value",
    "principal_components",
    "slope_scale",
    "spectral",
    "verify",
]
