"""The report: one HTML page on a fitted estimator, complete in itself, made to be read offline and passed on.

`collect` takes what the model says of itself, cut to the size of a page; `render` makes the page of it.
"""

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from princomp._atomic import atomic_file
from princomp.report.collect import collect
from princomp.report.render import render, template

__all__ = ["write"]


def write(
    estimator: Any,
    X: Any,
    path: str | PathLike[str],
    *,
    y: Any = None,
    title: str | None = None,
    labels: Any = None,
    label_name: str | None = None,
    sample_names: Iterable[Any] | None = None,
    scores: Any = None,
    notes: Sequence[str] = (),
    source: Any = None,
    image_shape: tuple[int, ...] | None = None,
    background: Any = None,
) -> Path:
    """Write a report on a fitted estimator: variances, scores, loadings, certificate.

    The page is one file with no links to others: it opens from disk, without a network. Its size is bounded, whatever
    the size of X: about 2 MB, up to 3 MB for 20 000 points, and what their names take.

    Parameters
    ----------
    estimator : estimator
        Fitted; parts of the page that it has nothing to say on are left out.
    X : as in ``fit``
        The data to show. Only its scores are taken from it, in blocks where X comes in blocks.
    path : path
        The file to write. It appears when it is complete.
    y : as in ``fit``, optional
        The other side, of an estimator that has two: `SparseCCA`.
    title : str, optional
        Of the page.
    labels : (n,) array-like, optional
        Colours the points: texts as categories (the 12 most frequent), numbers on a scale. Without labels the points
        of a mixture are coloured by group.
    label_name : str, optional
        What the labels are.
    sample_names : iterable of n names, optional
        Shown when the pointer is on a point.
    scores : (n, k) array or Scores, optional
        ``estimator.transform(X)``, or what `princomp.estimators.description.describe_scores` gives, if it is there
        already; X is not read then.
    notes : sequence of str
        Sentences for the reader, such as what was left out of the data.
    source : str or path, optional
        Where the data come from.
    image_shape : (int, int) or (int, int, 3), optional
        Where samples are images: their height and width, and 3 if they have colours. Components, or atoms, are then
        drawn as images. Of images and volumes that `princomp.read` has read this is known.
    background : (p,) array-like, optional
        Of volumes: the grey image over which components are drawn, the mean of all for example.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from princomp import PCA, report
    >>> iris = load_iris(as_frame=True)
    >>> folder = tempfile.TemporaryDirectory()
    >>> page = report.write(
    ...     PCA().fit(iris.data), iris.data, Path(folder.name) / "report.html", labels=iris.target_names[iris.target]
    ... )
    >>> page.name, page.stat().st_size < 2e6
    ('report.html', True)
    >>> folder.cleanup()
    """
    template()  # complains about what is missing, before the work begins
    content = collect(
        estimator,
        X,
        y,
        title=title,
        labels=labels,
        label_name=label_name,
        sample_names=sample_names,
        scores=scores,
        notes=notes,
        source=source,
        image_shape=image_shape,
        background=background,
    )
    page = render(content).encode()
    with atomic_file(path) as file:
        file.write(page)
    return Path(path)
