"""Coders: each writes rows as combinations of few atoms, from the Gram matrix of the atoms and correlations alone.

With atoms d_1 .. d_K, the rows of D (they need not have unit norm), a code a of a row x minimises, or nearly so,

    1/2 |x - a D|^2 + h(a),    or the first part alone where a may have so many nonzeros, or until it is small enough.

A coder never sees x or D: G = D D', c = D x and |x|^2 say all, since |x - a D|^2 = |x|^2 - 2 a.c + a G a'. So any coder
serves any dictionary, rows with missing cells (which have a Gram matrix of their own) and any storage. `base` says what
a coder provides; one file each.
"""
