"""Our estimators under scikit-learn's parameter names, so that scikit-learn's own tests can drive them.

Only constructor parameters are renamed; nothing is computed here.
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
