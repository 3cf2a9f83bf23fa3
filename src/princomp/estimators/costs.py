"""What each solver of PCA is likely to take, in seconds of one core: from multiplications, and how fast those are made.

The rates were measured on one core of a server of 2025 (AVX-512, OpenBLAS, 32 MiB of cache); what counts is their
ratios. How many products "krylov" takes depends on how fast variances fall: the number here lies between those of data
with some strong components, which take half of it, and of noise, which takes twice as many.
"""

MATRIX = 4.5e10  # multiplications of large matrices a second, two for each cell of X'X that is not its mirror image
FEW_VECTORS = 2.7e10  # of a large matrix with eight vectors
SINGLE = 2.0  # times as many in single precision
SINGLE_CELLS = 1e6  # from which on "krylov" begins in it
SPARSE = 4e9  # of nonzeros with eight vectors
SPARSE_GRAM = 6e7  # of two nonzeros, in X'X
STEP = 3e-4  # seconds of a step of an iteration, whatever it multiplies
BLOCK, COMPONENTS = 8, 64  # vectors at a time, for every so many components
COLUMNS = (160, 2.5)  # that "krylov" multiplies, and so many more for each component
PROBE = 12  # more steps, with as many vectors: what was left out
EIGENVALUES = 3.5e-11  # seconds times side^3, for some eigenvectors
ALL_EIGENVALUES = (1e-10, 4e-8)  # seconds times side^3, and side^2, for all
SINGULAR_VALUES = (2.5e-10, 8e-8)
SVD_COPIES = 32.0  # bytes for each cell of wide data, which are copied whole, and their factors
COPY = 1e10  # bytes a second, into memory that is new
SMALL = 300  # up to which some eigenvectors take as long as all
PASS = 1e-4  # seconds of a pass over data in memory, beyond its work: "svd" and the eigenproblem of XX' make two more
WIDE_PASSES = 50  # that XX' takes of data on workers: by pairs of blocks
FETCHED = 500  # rows and columns up to which data on workers are fetched for "svd"; larger ones might not fit
LITTLE = 0.1  # seconds that "svd", whose digits are all right, may take for all components
FEW = 1 / 8  # of the smaller side: with more components "krylov" saves nothing


def choose_solver(
    n: int, p: int, k: int, pass_seconds: float = 0.0, *, density: float = 1.0, single: bool = False
) -> str:
    """Return the solver that ``"auto"`` means: the one that is likely to take the least time.

    That is, as a rule, for dense data in memory:

    ===================================  =========  ===================================================
    data (n, p), k components            solver     because
    ===================================  =========  ===================================================
    all components, at most about 700    svd        exact to the last digit, and costs little
    the smaller side at most about 600   eigh       one pass and a small eigenproblem
    k above an eighth of that side       eigh       few vectors are no saving any more
    otherwise                            krylov     a few passes with eight vectors each
    ===================================  =========  ===================================================

    Where rows are many times as long as there are of them, or a pass takes long (``pass_seconds``), "eigh" pays for
    larger sides, too. ``density`` is the share of cells that are stored; ``single``: the data are float32.
    """
    seconds = {
        "svd": _svd(n, p) + 2 * PASS + 2 * pass_seconds,
        "eigh": _eigh(n, p, k, density, single) + (WIDE_PASSES if n < p else 0) * pass_seconds,
        "krylov": _krylov(n, p, k, density, pass_seconds),
    }
    if k > FEW * min(n, p):
        del seconds["krylov"]
    if pass_seconds and max(n, p) > FETCHED:
        del seconds["svd"]
    if k == min(n, p) and seconds["svd"] <= LITTLE:
        return "svd"
    return min(seconds, key=lambda name: seconds[name])


def _svd(n: int, p: int) -> float:
    small, large = sorted((n, p))
    cubed, squared = SINGULAR_VALUES
    copies = SVD_COPIES * n * p / COPY if n <= p else 0.0
    return 2.0 * large * small**2 / MATRIX + cubed * small**3 + squared * small**2 + copies


def _eigh(n: int, p: int, k: int, density: float, single: bool) -> float:
    small, large = sorted((n, p))
    cubed, squared = ALL_EIGENVALUES
    solve = cubed * small**3 + squared * small**2
    if small > SMALL:
        solve = min(solve, EIGENVALUES * small**3 + 2.0 * k * small**2 / MATRIX)
    product = float(large) * small**2 / MATRIX / (SINGLE if single and n < p else 1.0)
    if density < 1:
        product = min(product, large * (density * small) ** 2 / SPARSE_GRAM + small**2 / MATRIX)
    # Vectors of X'X are made from those of XX', and measured by a pass.
    back = 6.0 * n * p * k / MATRIX + 2 * PASS if n < p else 0.0
    return product + solve + small**3 / 3.0 / MATRIX + back


def _krylov(n: int, p: int, k: int, density: float, pass_seconds: float) -> float:
    block = BLOCK * -(-k // COMPONENTS)
    columns = COLUMNS[0] + COLUMNS[1] * k
    steps = columns / block + PROBE
    rate = SPARSE if density < 1 else FEW_VECTORS * (SINGLE if n * p >= SINGLE_CELLS else 1.0)
    products = 4.0 * density * n * p * (columns + PROBE * BLOCK / 2 + k) / rate
    basis = 4.0 * min(p, 8 * n) * columns**2 / FEW_VECTORS + 3 * ALL_EIGENVALUES[0] * columns**3
    return products + basis + steps * (STEP + pass_seconds)
