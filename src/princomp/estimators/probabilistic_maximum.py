"""Probabilistic PCA by EM: the largest likelihood that several starts lead to, and whether it is a maximum.

EM ends; slope and curvature are then measured anew, from the rows and the model. Where a direction leads up, it is
followed, and EM goes on from there.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from princomp.certificates import likelihood
from princomp.result import Certificate, History, Result
from princomp.solvers import probabilistic_em, probabilistic_starts
from princomp.solvers.probabilistic_curvature import Curvature
from princomp.solvers.probabilistic_em import Data, Model

ROUNDS = 20  # of EM, after saddles
NO_NOISE = "the noise is the least there may be, where the likelihood has no bound"


def maximum(
    data: Data, begins: list[Model], drive: Callable[..., Result], *, tol: float, max_iter: int, bounded: bool
) -> Result:
    """Return where EM from several starts has led, with a certificate of that model.

    ``certificate.details["likelihoods"]`` has what each start has led to; history and number of iterations are those
    of the best one.
    """
    how: dict[str, Any] = {"tol": tol, "max_iter": max_iter}
    solver = partial(probabilistic_starts.em, data, begins=begins, bounded=bounded, **how)
    result = _best(drive(solver, probabilistic_starts.start(begins), scope="local", **how), data)
    for turn in range(ROUNDS + 1):
        if not result.certificate.residual <= tol:
            break  # not even EM is content
        certificate, upward = certify(data, probabilistic_em.model_of(result.value), tol, turn)
        result = replace(result, certificate=certificate)
        if upward is None or not result.status or turn == ROUNDS:
            break
        begin = probabilistic_starts.again(result.value, upward, result.n_iter)
        result = _best(drive(solver, begin, scope="local", **how), data).after(result)
    details = {**result.certificate.details, "likelihoods": result.value["likelihoods"]}
    return replace(result, certificate=replace(result.certificate, details=details))


def certify(data: Data, model: Model, tol: float, random_state: int = 0) -> tuple[Certificate, Model | None]:
    """Return the certificate of a model, measured from the rows, and where EM may go on from if it does not hold."""
    if probabilistic_em.at_floor(model.noise, data.floor):
        return Certificate(np.inf, tol, "local", details={"meaning": NO_NOISE}), None
    at, moments = Curvature(data, model), data.moments
    certificate, step = likelihood.local_maximum(
        at, cells=moments.cells, rows=moments.total, tol=tol, random_state=random_state
    )
    return certificate, None if step is None else at.moved(step)


def _best(result: Result, data: Data) -> Result:
    """Return the result of the best start, with its own history alone."""
    value, residual = result.value, result.certificate.residual
    since, until = int(value["since"]), result.n_iter
    if value["kept"].size and value["kept_numbers"][0] >= result.objective:
        state = probabilistic_starts.best(value, data)
        result = replace(result, value=state.value, objective=state.objective)
        residual, since, until = state.residual, *(int(i) for i in value["kept_numbers"][2:4])
    old = result.history
    mine = [i for i, iteration in enumerate(old.iteration) if since < iteration <= until]
    history = History(
        [old.iteration[i] - since for i in mine],
        [old.objective[i] for i in mine],
        [old.residual[i] for i in mine],
        [old.seconds[i] for i in mine],
    )
    certificate = replace(result.certificate, residual=residual)
    return replace(result, certificate=certificate, n_iter=until - since, history=history)
