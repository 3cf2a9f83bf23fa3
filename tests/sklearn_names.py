"""Our estimators under scikit-learn's parameter names, so that scikit-learn's own tests can drive them.

Only parameters are renamed; nothing is computed here.
"""

import princomp

SOLVERS = {"auto": "auto", "full": "svd", "covariance_eigh": "eigh", "arpack": "krylov", "randomized": "krylov"}


class PCA(princomp.PCA):
    """princomp.PCA with the parameters of sklearn.decomposition.PCA.

    `copy`, `iterated_power`, `n_oversamples` and `power_iteration_normalizer` are accepted and ignored: data are never
    overwritten, and the Krylov solver goes on until its certificate holds.
    """

    def __init__(
        self,
        n_components=None,
        *,
        copy=True,
        whiten=False,
        svd_solver="auto",
        tol=1e-12,  # theirs is 0.0, which means machine precision
        iterated_power="auto",
        n_oversamples=10,
        power_iteration_normalizer="auto",
        random_state=None,
    ):
        super().__init__(n_components, whiten=whiten, random_state=random_state)
        self.copy = copy
        self.svd_solver = svd_solver
        self.tol = tol
        self.iterated_power = iterated_power
        self.n_oversamples = n_oversamples
        self.power_iteration_normalizer = power_iteration_normalizer

    @property
    def solver(self):
        return SOLVERS.get(self.svd_solver, self.svd_solver)

    @solver.setter
    def solver(self, value):
        """Ignored: `svd_solver` decides."""


class SparsePCA(princomp.SparsePCA):
    """princomp.SparsePCA, in dictionary form, with the parameters of sklearn.decomposition.SparsePCA.

    `method`, `n_jobs`, `ridge_alpha`, `U_init` and `V_init` are accepted and ignored: there is one method, scores are
    least squares without a ridge, and fits begin at the singular vectors.
    """

    def __init__(
        self,
        n_components=None,
        *,
        alpha=1,
        ridge_alpha=0.01,
        max_iter=1000,
        tol=1e-8,
        method="lars",
        n_jobs=None,
        U_init=None,
        V_init=None,
        verbose=False,
        random_state=None,
    ):
        super().__init__(
            n_components,
            formulation="dictionary",
            alpha=alpha,
            max_iter=max_iter,
            tol=tol,
            verbose=verbose,
            random_state=random_state,
        )
        self.ridge_alpha = ridge_alpha
        self.method = method
        self.n_jobs = n_jobs
        self.U_init = U_init
        self.V_init = V_init


class KernelPCA(princomp.KernelPCA):
    """princomp.KernelPCA, exact, with the parameters of sklearn.decomposition.KernelPCA.

    `alpha`, `fit_inverse_transform`, `eigen_solver`, `iterated_power`, `remove_zero_eig`, `copy_X` and `n_jobs` are
    accepted and ignored: the way back needs no fit of its own, and there is one answer, however it is found.
    """

    def __init__(
        self,
        n_components=None,
        *,
        kernel="linear",
        gamma=None,
        degree=3,
        coef0=1,
        kernel_params=None,
        alpha=1.0,
        fit_inverse_transform=False,
        eigen_solver="auto",
        tol=1e-12,  # theirs is 0, which means machine precision
        max_iter=1000,
        iterated_power="auto",
        remove_zero_eig=False,
        random_state=None,
        copy_X=True,
        n_jobs=None,
    ):
        super().__init__(
            n_components,
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            kernel_params=kernel_params,
            approximation=None,
            tol=tol,
            max_iter=max_iter,
            random_state=random_state,
        )
        self.alpha = alpha
        self.fit_inverse_transform = fit_inverse_transform
        self.eigen_solver = eigen_solver
        self.iterated_power = iterated_power
        self.remove_zero_eig = remove_zero_eig
        self.copy_X = copy_X
        self.n_jobs = n_jobs


# --- dictionary learning --------------------------------------------------------------------------

LASSO = ("lasso_lars", "lasso_cd")


def coding(algorithm, n_nonzero_coefs, alpha, n_features, n_components):
    """Our parameters for one of scikit-learn's ways to code; least angle regression and thresholds have none."""
    if algorithm in LASSO:
        return {"penalty": "l1", "alpha": 1.0 if alpha is None else alpha}
    if algorithm == "omp":
        default = min(max(n_features // 10, 1), n_components)
        return {"nonzeros": default if n_nonzero_coefs is None else n_nonzero_coefs, "selection": "omp"}
    raise NotImplementedError(f"no coding is called {algorithm!r} here")


def sparse_encode(
    X,
    dictionary,
    *,
    gram=None,
    cov=None,
    algorithm="lasso_lars",
    n_nonzero_coefs=None,
    alpha=None,
    copy_cov=True,
    init=None,
    max_iter=1000,
    n_jobs=None,
    check_input=True,
    verbose=0,
    positive=False,
):
    """princomp.sparse_encode with the parameters of sklearn.decomposition.sparse_encode, and dense codes.

    `gram`, `cov`, `copy_cov`, `init`, `max_iter`, `n_jobs`, `check_input` and `verbose` are accepted and ignored: codes
    go on until their duality gap is small.
    """
    how = coding(algorithm, n_nonzero_coefs, alpha, *dictionary.shape[::-1])
    return princomp.sparse_encode(X, dictionary, positive=positive, **how).toarray()


class _Learning(princomp.DictionaryLearning):
    """What both of scikit-learn's classes have in common: how new rows are coded.

    `fit_algorithm`, `n_jobs`, `split_sign` and `transform_max_iter` are accepted and ignored.
    """

    def _transform_coding(self):
        n_features = getattr(self, "n_features_in_", 10)
        n_components = self.n_components or n_features
        how = (self.transform_algorithm, self.transform_n_nonzero_coefs, self.transform_alpha)
        return coding(*how, n_features, n_components)

    @property
    def transform_penalty(self):
        return "l1"

    @property
    def transform_nonzeros(self):
        return self._transform_coding().get("nonzeros")

    @property
    def transform_error(self):
        return None

    @transform_penalty.setter
    def transform_penalty(self, value):
        """Ignored: `transform_algorithm` decides."""

    @transform_nonzeros.setter
    def transform_nonzeros(self, value):
        """Ignored: `transform_algorithm` decides."""

    @transform_error.setter
    def transform_error(self, value):
        """Ignored: `transform_algorithm` decides."""


class DictionaryLearning(_Learning):
    """princomp.DictionaryLearning in batches of all rows, with the parameters of scikit-learn's DictionaryLearning.

    `code_init` is accepted and ignored: codes follow from the atoms.
    """

    def __init__(
        self,
        n_components=None,
        *,
        alpha=1,
        max_iter=1000,
        tol=1e-8,
        fit_algorithm="lars",
        transform_algorithm="omp",
        transform_n_nonzero_coefs=None,
        transform_alpha=None,
        n_jobs=None,
        code_init=None,
        dict_init=None,
        callback=None,
        verbose=False,
        split_sign=False,
        random_state=None,
        positive_code=False,
        positive_dict=False,
        transform_max_iter=1000,
    ):
        self.transform_algorithm = transform_algorithm
        self.transform_n_nonzero_coefs = transform_n_nonzero_coefs
        super().__init__(
            n_components,
            method="batch",
            alpha=alpha,
            max_iter=max_iter,
            tol=tol,
            transform_alpha=transform_alpha,
            dict_init=dict_init,
            callback=callback,
            verbose=verbose,
            random_state=random_state,
            positive_code=positive_code,
            positive_dict=positive_dict,
        )
        self.fit_algorithm = fit_algorithm
        self.n_jobs = n_jobs
        self.code_init = code_init
        self.split_sign = split_sign
        self.transform_max_iter = transform_max_iter


class MiniBatchDictionaryLearning(_Learning):
    """princomp.DictionaryLearning, online, with the parameters of scikit-learn's MiniBatchDictionaryLearning.

    `shuffle` and `max_no_improvement` are accepted and ignored.
    """

    def __init__(
        self,
        n_components=None,
        *,
        alpha=1,
        max_iter=1_000,
        fit_algorithm="lars",
        n_jobs=None,
        batch_size=256,
        shuffle=True,
        dict_init=None,
        transform_algorithm="omp",
        transform_n_nonzero_coefs=None,
        transform_alpha=None,
        verbose=False,
        split_sign=False,
        random_state=None,
        positive_code=False,
        positive_dict=False,
        transform_max_iter=1000,
        callback=None,
        tol=1e-3,
        max_no_improvement=10,
    ):
        self.transform_algorithm = transform_algorithm
        self.transform_n_nonzero_coefs = transform_n_nonzero_coefs
        super().__init__(
            n_components,
            method="online",
            alpha=alpha,
            max_iter=max_iter,
            tol=tol,
            batch_size=batch_size,
            transform_alpha=transform_alpha,
            dict_init=dict_init,
            callback=callback,
            verbose=verbose,
            random_state=random_state,
            positive_code=positive_code,
            positive_dict=positive_dict,
        )
        self.fit_algorithm = fit_algorithm
        self.n_jobs = n_jobs
        self.shuffle = shuffle
        self.split_sign = split_sign
        self.transform_max_iter = transform_max_iter
        self.max_no_improvement = max_no_improvement
