"""scikit-learn's common checks of every method: none may fail but where one method is two in the eyes of the checks."""

import warnings

from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import princomp
from methods import FORMS, METHODS
from princomp.estimators import __all__ as PUBLIC

# Some data of the checks have one feature, so that there can be no more components.
ONE = [clone(method.make()).set_params(n_components=1, **method.one_feature) for method in METHODS.values()]
AS_THEY_COME = [getattr(princomp, name)() for name in PUBLIC]
OTHERS = [getattr(princomp, name)(**parameters) for name, parameters in FORMS]
TRUE_WARNINGS = (  # data of the checks are noise, or have none, or are a few points, each several times
    ".*components are zero",
    "n_components='ard' found nothing that stands out of the noise",
    r"\d+ components? leaves? nothing of X",
    r"\d+ of \d+ clusters have no noise left",
    "Every code is 0, so nothing could be learnt",
    "Most rows have no atom in their codes",
    "Nearly all squares of X are those of the means of its columns",
)


# Noise in two columns has no plane that stands out: the bounded losses have a long flat valley, and a fit says so.
VALLEY = {"cellwise": r"Not converged after max_iter=1000 iterations"}


def expected_failures(estimator):
    if getattr(estimator, "method", None) != "closed-form":
        return {}
    reason = "missing cells are refused in fit, but not in transform; a tag says both or neither"
    return dict.fromkeys(("check_estimators_pickle", "check_estimators_pickle(readonly_memmap=True)"), reason)


@parametrize_with_checks([*ONE, *AS_THEY_COME, *OTHERS], expected_failed_checks=expected_failures)
def test_common_checks(estimator, check):
    with warnings.catch_warnings():
        for message in TRUE_WARNINGS:
            warnings.filterwarnings("ignore", message, UserWarning)
        if valley := VALLEY.get(getattr(estimator, "method", None)):
            warnings.filterwarnings("ignore", valley, UserWarning)
        check(estimator)
