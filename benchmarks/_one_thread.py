"""Import before numpy: BLAS reads these variables when it is loaded."""

import os

for _library in ("OMP", "OPENBLAS", "MKL", "VECLIB", "BLIS", "NUMBA"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"
