"""Probabilistic PCA with missing cells: the largest likelihood that several starts lead to, and whether it is a maximum.

EM ends; slope and curvature are then measured anew, from the rows and the model. Where a direction leads up, it is
followed, and EM goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp.certificates import likelihood
from princomp.result import Certificate, History, Result
from princomp.solvers import probabilistic_em, probabilistic_starts
from princomp.solvers.probabilistic_curvature import Curvature
from princomp.solvers.probabilistic_em import Data, Model

Array = NDArray[Any]

ROUNDS = 20  # of EM, after saddles
UPWARD = 3  # directions that are tried at a saddle
REACH = (2.0, 1.0, 0.5, 0.25, 0.0625)  # of a step along them
# More curvature than this is looked for, whatever the tolerance.
STRONGEST = 0.5


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
        result = _joined(result, _best(drive(solver, begin, scope="local", **how), data))
    details = {**result.certificate.details, "likelihoods": result.value["likelihoods"]}
    return replace(result, certificate=replace(result.certificate, details=details))


def certify(data: Data, model: Model, tol: float, seed: int = 0) -> tuple[Certificate, Model | None]:
    """Certify that no small step gains more than ``tol`` for each cell; else return a model for EM to go on from.

    Curvature of c gains about n c^2 / 4 with n rows, as a component that was left out does, of c noise more variance
    than noise: curvature that gains less than ``tol`` asks for is not looked for.
    """
    if probabilistic_em.at_floor(model.noise, data.floor):
        meaning = "the noise is the least there may be, where the likelihood has no bound"
        return Certificate(np.inf, tol, "local", details={"meaning": meaning}), None
    cells, total, rng = data.moments.cells, data.moments.total, np.random.default_rng(seed)
    enough = tol * cells
    level, gain = min(2 * float(np.sqrt(enough / total)), STRONGEST), 0.0
    at = Curvature(data, model)
    while True:
        curved = likelihood.curvature(at.apply, at.random(rng), at.dimension, level)
        if not curved.upward.size:
            break
        gained, upward = _followed(at, curved, enough)
        gain, level = max(gain, gained), 1.5 * curved.largest  # weak: is there a stronger one?
        if gain > enough:
            break
    slope = likelihood.slope_gain(at.apply, at.gradient, curved.bound, enough)
    unseen = total * curved.bound**2 / 4 if curved.miss > likelihood.MISS and gain <= enough else 0.0
    details = {
        "meaning": _meaning(curved, gain, slope, unseen, enough),
        "largest curvature": curved.largest,
        "largest curvature that may be": curved.bound,
        "probability of a miss": curved.miss,
        "gain along curvature": gain,
        "gain along the slope": slope,
    }
    certificate = Certificate(max(gain, slope, unseen) / cells, tol, "local", details=details)
    if gain > enough:
        return certificate, upward
    return certificate, model if slope > enough else None


def _meaning(curved: likelihood.Curved, gain: float, slope: float, unseen: float, enough: float) -> str:
    """Return what the numbers say."""
    if gain > enough:
        return f"a saddle: a step along its curvature gains {gain:.2g} nats"
    if slope > enough:
        return f"not yet a maximum: its slope promises {slope:.2g} nats"
    if unseen > enough:
        return f"curvature of up to {curved.bound:.2g}, which would make it a saddle, could not be excluded"
    return f"a local maximum (a saddle was looked for, and is missed with a probability of at most {likelihood.MISS:.0e})"


def _followed(at: Curvature, curved: likelihood.Curved, enough: float) -> tuple[float, Model]:
    """Return the largest gain found along directions that curve upwards, and the model there."""
    base = float(at.data.sums(at.model).log_likelihood)
    size = np.sqrt(at.data.moments.total * curved.largest)  # where such a gain is largest
    best, model = 0.0, at.model
    for direction in curved.upward.T[:UPWARD]:
        forth = 1.0 if at.gradient @ direction >= 0 else -1.0
        for sign in (forth, -forth):
            for reach in REACH:
                tried = at.moved(sign * reach * size * direction)
                gain = float(at.data.sums(tried).log_likelihood) - base
                if gain > best:
                    best, model = gain, tried
            if best > enough:
                return best, model
    return best, model


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


def _joined(before: Result, after: Result) -> Result:
    """Return what came after, with the history of both."""
    one, other = before.history, after.history
    history = History(
        one.iteration + other.iteration,
        one.objective + other.objective,
        one.residual + other.residual,
        one.seconds + other.seconds,
    )
    return replace(after, history=history)
