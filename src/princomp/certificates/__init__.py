"""Certificates: how good an answer is, measured from data and answer alone, whichever solver gave it."""

from princomp.certificates.canonical import canonical_stationarity
from princomp.certificates.coding import coding_gaps
from princomp.certificates.constrained import constrained_stationarity
from princomp.certificates.dictionary import dictionary_kkt, slope_scale
from princomp.certificates.left_out import LeftOut, left_out_of_matrix, left_out_of_values, probe
from princomp.certificates.nonnegative import nonnegative_value
from princomp.certificates.penalised_coding import penalty_gaps, penalty_steps
from princomp.certificates.principal import (
    Images,
    and_dominance,
    certify,
    certify_all,
    error_of_row_gram,
    floor_of_data,
    floor_of_matrix,
    images_by_product,
    in_units,
    principal_components,
    spectral,
    taken_off,
)
from princomp.certificates.proof import CardinalityCertificate, Kind, Leaves
from princomp.certificates.reconstruction import reconstruction_steps
from princomp.certificates.regression import regression_stationarity
from princomp.certificates.verification import Verification, verify

__all__ = [
    "CardinalityCertificate",
    "Images",
    "Kind",
    "Leaves",
    "LeftOut",
    "Verification",
    "and_dominance",
    "canonical_stationarity",
    "certify",
    "certify_all",
    "coding_gaps",
    "constrained_stationarity",
    "dictionary_kkt",
    "error_of_row_gram",
    "floor_of_data",
    "floor_of_matrix",
    "images_by_product",
    "in_units",
    "left_out_of_matrix",
    "left_out_of_values",
    "nonnegative_value",
    "penalty_gaps",
    "penalty_steps",
    "principal_components",
    "probe",
    "reconstruction_steps",
    "regression_stationarity",
    "slope_scale",
    "spectral",
    "taken_off",
    "verify",
]
