"""Dictionary learning: rows as combinations of few atoms, and the atoms that serve them best."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from princomp._kinds import MODERATE, NONNEGATIVE, Count, Kind, Number, Numbers
from princomp._typing import Array
from princomp._warn import warn
from princomp.coders.base import Coder
from princomp.coders.choice import as_coder
from princomp.data import Rows, as_rows
from princomp.estimators.base import Estimator
from princomp.estimators.checks import check_choice, check_count, check_time_limit, count_components
from princomp.estimators.description import Description, Scores
from princomp.estimators.dictionary_description import describe_dictionary, scores_of_codes, squares_left
from princomp.estimators.dictionary_fit import Learnt, Question, coded_rows, go_on, learn, mean_objective
from princomp.estimators.dictionary_use import advice, hardly_used, how_little
from princomp.losses import Squared, as_loss
from princomp.penalties.trial import try_penalty
from princomp.progress import Tell
from princomp.result import State
from princomp.solvers.learning_atoms import Atoms

METHODS = ("online", "batch", "ksvd")


class DictionaryLearning(Estimator):
    r"""Learn atoms such that each row is nearly a combination of few of them.

    With atoms :math:`d_1, \dots, d_K`, the rows of D, and a code :math:`a` for each row :math:`x`, it minimises the
    mean over rows of

    .. math:: \tfrac12 \|x - a D\|^2 + h(a), \quad \|d_k\| \le 1,

    over codes and atoms; h is ``alpha`` times the l1 norm by default. Columns are not centred. Unlike the components of
    PCA, atoms are not orthogonal, and there may be more of them than columns.

    Parameters
    ----------
    n_components : int, optional
        Number of atoms, K; by default as many as ``dict_init`` has, or else as there are columns.
    method : {"online", "batch", "ksvd"}, default "online"
        "online": mini-batches, after each of which atoms are improved; by far the fastest on many rows. "batch": all
        rows are coded, then atoms improved, and so on: the objective never rises. "ksvd": the same with codes by
        pursuit (``nonzeros`` or ``error`` must be given) and atoms of length 1.
    penalty : {"l1", "elastic-net", "l0", "lp"} or Penalty, default "l1"
        h: a name, or an object such as those in `princomp.penalties`.
    alpha : float, default 1.0
        Weight of a penalty that is given by its name.
    l2 : float, default 0.0
        Weight of 1/2 \|a\|^2, which "l1" and "elastic-net" have, too.
    nonzeros : int, optional
        The most nonzeros of a code. Where it or ``error`` is given codes are found by greedy pursuit, whatever
        ``penalty`` and ``alpha`` say.
    error : float, optional
        The length of x - a D at which a code is good enough, in the units of X.
    selection : {"ols", "omp"}, default "ols"
        How the pursuit chooses the next atom: the one that lowers the error most, or the one most correlated with it.
    loss : {"l2", "huber", "l1"} or Loss, default "l2"
        How x - a D is measured: 1/2 sum_j rho(x_j - (a D)_j) with rho(r) = r^2 by default; "huber" and "l1" let wild
        cells count by their size, not their square, and have a width that is taken from the errors of the first atoms;
        or an object such as those in `princomp.losses`.
    constraint : {"ball", "sphere"} or Penalty, default "ball"
        Where atoms may be: of length at most 1, of length 1, or what an object such as those in `princomp.penalties`
        says: a set such as `princomp.penalties.L1Ball`, or a penalty of each atom that is added to the mean over rows.
    positive_code, positive_dict : bool, default False
        Whether codes, or the entries of atoms, must not be negative.
    batch_size : int, default 512
        Rows of a mini-batch, drawn at random, however rows are stored. On workers, where each step is a pass over the
        data, they may be more.
    forgetting : float, optional
        Share of the past that is forgotten with each mini-batch, from 0 for nothing to 1 for all. By default the t-th
        mini-batch counts for t, and what lies back by a third of an epoch, and so comes again, for little.
    update : {"approximate", "exact"}, default "approximate"
        For "ksvd": a step of the power method for each atom, or its leading singular vector, for which rows must be in
        memory.
    max_seconds : float, optional
        Time after which the fit ends, at the next state; what is measured afterwards takes a pass more.
    replace : bool, default True
        Whether atoms that hardly serve, or are twins of others, are replaced by the rows that are coded worst, and, by
        "ksvd", those that stand for two directions are split.
    dict_init : (K, p) array-like, optional
        Atoms to begin with; by default rows drawn at random, normalised.
    transform_penalty, transform_alpha, transform_nonzeros, transform_error : optional
        How `transform` codes, where that is not as in the fit: those that are given take the place of ``penalty``,
        ``alpha``, ``nonzeros`` and ``error``; with a penalty or alpha of its own, nonzeros and error of the fit do not
        count.
    sparse_output : bool, default False
        Whether `transform` returns a CSR array.
    tol : float, default 1e-4
        Bound on the relative projected gradient of the atoms. "batch" goes on until it is met, and warns if it is not;
        "online" and "ksvd" end with ``max_iter``, as a rule, and the certificate says how near they came.
    max_iter : int, optional
        Bound on iterations: passes over all rows. By default 200 for "batch", 50 for "ksvd", and for "online" as many
        as make 200 000 rows, from 2 to 30.
    random_state : int or RandomState, optional
        Seed of the start and of mini-batches.
    verbose, callback, checkpoint
        As in `PCA`.
    time_limit : float, optional
        Seconds for the whole fit. Then it ends at its next state with the best answer so far, a warning, and
        ``result_.status`` to say so.

    Attributes
    ----------
    components_ : (K, p) array
        The atoms.
    n_replaced_ : int
        How many atoms were replaced on the way.
    atom_counts_ : (K,) array of int
        How many rows use each atom, when all are coded after the fit (`partial_fit`: those of the last call): over
        ``n_coded_``, of how many rows, their sum is the mean number of nonzeros of a code.
    residual_share_ : float or None
        What codes leave of the rows: the sum of \|x - a D\|^2 over that of \|x\|^2. None with a loss that is not "l2".
    loss_ : Loss
        The loss as the fit used it, with the width that was found.
    n_components_, n_features_in_, n_samples_, n_coded_, n_iter_ : int
        Counts.
    result_ : Result
        ``value`` ("D", and the statistics "A", "B" that `partial_fit` goes on with), ``objective`` (the mean over rows
        and what a penalty of atoms adds), ``certificate``, ``status``, ``history``.
    certificate_ : Certificate
        That no small step of the atoms improves them, the codes being what the coder finds: measured on the data, after
        the fit. ``details`` has the largest duality gap of a code, where the penalty has one.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp import DictionaryLearning
    >>> rng = np.random.default_rng(0)
    >>> atoms = np.linalg.qr(rng.normal(size=(8, 4)))[0].T
    >>> codes = rng.normal(size=(2000, 4)) * (rng.random((2000, 4)) < 0.25)
    >>> model = DictionaryLearning(4, alpha=0.05, random_state=0).fit(codes @ atoms)
    >>> bool((np.abs(model.components_ @ atoms.T).max(axis=0) > 0.99).all())
    True
    """

    _fitted: ClassVar[Mapping[str, Kind]] = {
        "components_": Numbers("k p", MODERATE),
        "n_replaced_": Count(),
        "atom_counts_": Numbers("k", NONNEGATIVE, dtypes="iu"),
        "residual_share_": Number(NONNEGATIVE, or_none=True),
        "n_samples_": Count(1),
        "n_coded_": Count(1),
    }
    _missing_allowed = True

    def __init__(
        self,
        n_components: int | None = None,
        *,
        method: str = "online",
        penalty: Any = "l1",
        alpha: float = 1.0,
        l2: float = 0.0,
        nonzeros: int | None = None,
        error: float | None = None,
        selection: str = "ols",
        loss: Any = "l2",
        constraint: Any = "ball",
        positive_code: bool = False,
        positive_dict: bool = False,
        batch_size: int = 512,
        forgetting: float | None = None,
        update: str = "approximate",
        max_seconds: float | None = None,
        replace: bool = True,
        dict_init: Any = None,
        transform_penalty: Any = None,
        transform_alpha: float | None = None,
        transform_nonzeros: int | None = None,
        transform_error: float | None = None,
        sparse_output: bool = False,
        tol: float = 1e-4,
        max_iter: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[[State], Any] | None = None,
        checkpoint: str | PathLike[str] | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.penalty = penalty
        self.alpha = alpha
        self.l2 = l2
        self.nonzeros = nonzeros
        self.error = error
        self.selection = selection
        self.loss = loss
        self.constraint = constraint
        self.positive_code = positive_code
        self.positive_dict = positive_dict
        self.batch_size = batch_size
        self.forgetting = forgetting
        self.update = update
        self.max_seconds = max_seconds
        self.replace = replace
        self.dict_init = dict_init
        self.transform_penalty = transform_penalty
        self.transform_alpha = transform_alpha
        self.transform_nonzeros = transform_nonzeros
        self.transform_error = transform_error
        self.sparse_output = sparse_output
        super().__init__(tol, max_iter, random_state, verbose, callback, checkpoint, time_limit)  # type: ignore[arg-type]

    # Fitting

    def _fit(self, X: Any, tell: Tell) -> None:
        rows = self._open(X, reset=True, least_rows=2)
        asked = self._question(rows)
        drive = self._drive(tell, rows)
        found = learn(rows, asked, drive, tell, self._generator())
        self._keep(found, rows, seen=0)
        self._warn_of_little_use(found, rows, asked)

    def _keep(self, found: Learnt, rows: Rows, seen: int) -> None:
        result = found.result
        D = result.value["D"]
        self.atom_counts_ = found.coded.used.astype(np.int64)
        self.residual_share_ = None  # a loss counts something else than squares
        if isinstance(as_loss(self.loss), Squared):
            self.residual_share_ = found.coded.errors / found.coded.squares if found.coded.squares > 0 else 0.0
        self.components_ = D.astype(rows.dtype)
        self.n_components_ = len(D)
        self.n_replaced_ = int(result.value["replaced"])
        self.n_samples_, self.n_coded_ = seen + rows.shape[0], rows.shape[0]
        self._keep_result(result)

    @property
    def partial_fit(self) -> Callable[..., Self]:
        """Go on learning from further rows, with method="online": ``partial_fit(X, y=None)`` returns self.

        Rows are taken in mini-batches, in the order in which they come.

        The first call begins as `fit` does, from ``dict_init`` or rows of X. Later ones, or one after `fit`, go on with
        the atoms and statistics that are there; the certificate is that of the rows of the last call.

        Parameters
        ----------
        X : as in `fit`
            Some rows; one is enough.
        y : None
            Ignored.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from princomp import DictionaryLearning
        >>> rng = np.random.default_rng(0)
        >>> model = DictionaryLearning(5, alpha=0.1, random_state=0)
        >>> for _ in range(3):
        ...     model = model.partial_fit(rng.normal(size=(100, 8)))
        >>> model.n_samples_
        300
        """
        if self.method != "online":
            raise AttributeError(f'partial_fit goes with method="online", got {self.method!r}.')
        return self._partial_fit

    def _partial_fit(self, X: Any, y: Any = None) -> Self:
        return self._all_or_nothing(self._go_on, X)

    def _go_on(self, X: Any, tell: Tell) -> None:
        if self.checkpoint is not None:
            raise ValueError("checkpoint is for fit: after each call of partial_fit the model itself can be saved.")
        before = getattr(self, "result_", None)
        rows = self._open(X, reset=before is None)
        asked = self._question(rows)
        seen = 0 if before is None else self.n_samples_
        found = go_on(rows, asked, before, tell, self._generator())
        self._keep(found, rows, seen)
        if not found.result.value["A"].any():  # some rows without an atom are no news, if others had some
            self._warn_of_little_use(found, rows, asked)

    def _warn_of_little_use(self, found: Learnt, rows: Rows, asked: Question) -> None:
        """Warn if most rows have no atom: that the atoms do not move is then no sign of a good answer."""
        per_row, left = float(self.atom_counts_.sum()) / self.n_coded_, self.residual_share_
        if hardly_used(per_row, left):
            length = float(np.sqrt(found.coded.squares / found.coded.count))
            D = self.components_.astype(np.float64)
            warn(f"{how_little(per_row, left)}. {advice(rows, D, asked.coder, self.loss_, length)}")

    def _question(self, rows: Rows) -> Question:
        """Return what is asked of these rows; complain about parameters that mean nothing."""
        self._check_parameters()
        D = None if self.dict_init is None else self._given_atoms(rows.width)
        K = count_components(self.n_components, rows.width if D is None else len(D), of="", more=True)
        if D is not None and len(D) != K:
            raise ValueError(f"dict_init has {len(D)} atoms, but n_components={K}.")
        self._try_objects(K, rows.width)
        coder = as_coder(
            self.penalty,
            self.alpha,
            l2=self.l2,
            nonzeros=self.nonzeros,
            error=self.error,
            selection=self.selection,
            positive=self.positive_code,
        )
        self._transform_coder()
        as_loss(self.loss)
        kind = "sphere" if self.method == "ksvd" and self.constraint == "ball" else self.constraint
        if kind == "sphere" and not self.replace and D is not None and not D.any(axis=1).all():
            row = int(np.flatnonzero(~D.any(axis=1))[0])
            raise ValueError(f"dict_init has an atom of zeros, row {row}, and atoms have length 1. Use replace=True.")
        return Question(
            K=K,
            method=self.method,
            coder=coder,
            atoms=Atoms(kind, self.positive_dict),
            D=D,
            batch_size=self.batch_size,
            forgetting=self.forgetting,
            exact=self.update == "exact",
            replace=bool(self.replace),
            tol=self.tol,
            max_iter=self.max_iter,
            max_seconds=self.max_seconds,
            loss=self.loss,
            names=self._names,
        )

    def _try_objects(self, K: int, p: int) -> None:
        """Try penalties of the user's own, before anything is done with them."""
        if self.nonzeros is None and self.error is None:  # else it is not used
            try_penalty(self.penalty, K)
        if self.transform_penalty is not None:
            try_penalty(self.transform_penalty, K, "transform_penalty")
        try_penalty(self.constraint, p, "constraint", vectors_only=True)

    def _check_parameters(self) -> None:
        check_choice("method", self.method, METHODS)
        check_choice("update", self.update, ("approximate", "exact"))
        check_choice("selection", self.selection, ("ols", "omp"))
        if isinstance(self.constraint, str):
            check_choice("constraint", self.constraint, ("ball", "sphere"))
        elif not all(callable(getattr(self.constraint, name, None)) for name in ("value", "prox")):
            raise TypeError(
                'constraint must be "ball", "sphere", or an object such as those in princomp.penalties, got '
                f"{self.constraint!r}."
            )
        if self.method == "ksvd" and self.nonzeros is None and self.error is None:
            raise ValueError('method="ksvd" codes by pursuit: give nonzeros, error, or both.')
        check_count("batch_size", self.batch_size)
        check_number("alpha", self.alpha)
        check_number("l2", self.l2)
        check_number("error", self.error, or_none=True)
        check_number("forgetting", self.forgetting, most=1.0, or_none=True)
        check_number("max_seconds", self.max_seconds, or_none=True)
        check_number("tol", self.tol)
        check_time_limit(self.time_limit)
        check_count("max_iter", self.max_iter, or_none=True)

    def _given_atoms(self, p: int) -> Array:
        D = np.array(self.dict_init, dtype=np.float64)
        if D.ndim != 2 or D.shape[1] != p or not len(D):
            raise ValueError(f"dict_init must have one row for each atom and {p} columns, as X has; got {D.shape}.")
        if not np.isfinite(D).all():
            raise ValueError("dict_init must be finite: it holds NaN or infinity.")
        return D

    def _describe(self) -> Description:
        return describe_dictionary(self)

    def _describe_scores(self, X: Any, y: Any, values: Any) -> Scores:
        D = self.components_.astype(np.float64)
        if values is not None:
            return scores_of_codes(values, D)
        rows = self._open(X, reset=False)
        codes = coded_rows(rows, D, self._transform_coder(), self.loss_, sparse=True)
        return scores_of_codes(codes, D, rows.map(squares_left, codes, D, width=1, dtype=np.float64))

    # Using the fit

    def _transform_coder(self) -> Coder:
        """Return the coder of `transform`."""
        own = self.transform_penalty is not None or self.transform_alpha is not None
        named = self.penalty if self.transform_penalty is None else self.transform_penalty
        count, error = self.transform_nonzeros, self.transform_error
        if count is None and error is None and not own:
            count, error = self.nonzeros, self.error
        try:
            return as_coder(
                named,
                self.alpha if self.transform_alpha is None else self.transform_alpha,
                l2=self.l2 if isinstance(named, str) and named in ("l1", "elastic-net") else 0.0,
                nonzeros=count,
                error=error,
                selection=self.selection,
                positive=self.positive_code,
            )
        except (TypeError, ValueError) as problem:
            raise type(problem)(f"For transform: {problem}") from None

    @property
    def loss_(self) -> Any:
        """The loss as the fit used it: an object of `princomp.losses`, with the width that was found."""
        check_is_fitted(self)
        return as_loss(self.loss, float(self.result_.value["unit"]))

    def transform(self, X: Any) -> Any:
        """Return the codes of X.

        Parameters
        ----------
        X : as in `fit`
            New data, with the same columns.

        Returns
        -------
        (n, K) array, or CSR array with ``sparse_output=True``
            In the kind of X: a Dask array stays lazy.
        """
        rows = self._open(X, reset=False)
        D = self.components_.astype(np.float64)
        return coded_rows(rows, D, self._transform_coder(), self.loss_, sparse=self.sparse_output)

    def inverse_transform(self, X: Any) -> Any:
        """Return the rows that codes stand for: codes times atoms.

        Parameters
        ----------
        X : (n, K) array-like or sparse
            Codes, as `transform` gives them.

        Returns
        -------
        (n, p) array
            In the kind of X.
        """
        check_is_fitted(self)
        rows = as_rows(X)
        K, p = self.components_.shape
        if rows.width != K:
            raise ValueError(f"Codes must have {K} columns, one per atom, got {rows.width}.")
        return rows.map(_combined, self.components_.astype(np.float64), width=p, dtype=rows.dtype)

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the mean over rows of 1/2 |x - a D|^2 + h(a), with codes as in the fit: larger is better.

        Parameters
        ----------
        X : as in `fit`
            Data that the fit may not have seen.
        y : None
            Ignored.

        Returns
        -------
        float
        """
        rows = self._open(X, reset=False)
        unit = float(self.result_.value["unit"])
        return -mean_objective(rows, self._question(rows), self.components_.astype(np.float64), unit)


def _combined(block: Any, rows: slice, D: Array) -> Array:
    return np.asarray(block @ D)


def check_number(name: str, value: Any, *, most: float = np.inf, or_none: bool = False) -> None:
    """Complain about a parameter that is not a number from 0 to ``most``."""
    if or_none and value is None:
        return
    number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if not (number and 0 <= float(value) <= most and np.isfinite(float(value))):
        bounds = "of at least 0" if most == np.inf else f"from 0 to {most:g}"
        raise ValueError(f"{name} must be a number {bounds}{', or None;' if or_none else ','} got {value!r}.")
