"""`save` and `load`: estimators as parameters and fitted attributes in a model file."""

from collections.abc import Mapping
from numbers import Integral
from os import PathLike
from typing import Any, get_type_hints

from princomp._kinds import faults, matches
from princomp._version import __version__
from princomp.persistence import archive
from princomp.persistence.archive import ModelFileError, naming
from princomp.persistence.schema import MODELS, Model
from princomp.persistence.values import Encoder, decode

FORMAT, VERSION = "princomp model", 1
MANIFEST: dict[str, Any] = {
    "format": str,
    "version": int,
    "written_by": dict[str, str],
    "class": str,
    "parameters": dict[str, Any],
    "fitted": dict[str, Any] | None,
    "arrays": dict[str, Any],
}
CELLS = "n p"  # axes of what a fit leaves of each cell of its data: such an attribute is optional
NOT_SAVED = ("callback", "checkpoint")  # parameters that belong to a session, not to a model


def save(estimator: Any, path: str | PathLike[str], *, parts: bool = False) -> None:
    """Write an estimator to a model file, which `load` reads without running any code of the file.

    The file is a zip of JSON and ``.npy`` arrays. It takes the place of an older one in one step, when it is complete:
    an error, a full disk or a kill leaves the older one.

    Parameters
    ----------
    estimator : any of `princomp.estimators`
        Fitted or not. ``callback`` and ``checkpoint`` are not saved, nor is a ``random_state`` other than an integer:
        they are None after loading. Neither is what ``set_output`` set.
    path : path
        The file, used as it is given; by convention it ends in ``.princomp``.
    parts : bool, default False
        Whether what a fit leaves of each cell of its data is saved, too: the ``low_rank_`` and ``sparse_`` of
        `RobustPCA`, say. They are as large as the data, and what the model computes of rows needs none of them.

    Raises
    ------
    ModelFileError
        If the estimator, or something in it, is of a class that model files do not hold.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> import princomp
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> pca = princomp.PCA(n_components=2).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.princomp")
    ...     princomp.save(pca, path)
    ...     again = princomp.load(path)
    >>> bool(np.array_equal(again.transform(X), pca.transform(X)))
    True
    """
    with naming(path, "saved"):
        encoder = Encoder()
        name = type(estimator).__name__
        if name not in MODELS or MODELS[name].estimator is not type(estimator):
            raise ModelFileError(f"{name} is none of the estimators that model files hold: {', '.join(MODELS)}")
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "written_by": _versions(),
            "class": name,
            "parameters": {key: encoder.encode(item, "parameters", key) for key, item in _parameters(estimator)},
            "fitted": {key: encoder.encode(item, key) for key, item in _fitted(estimator, parts=parts)} or None,
        }
        archive.write(path, manifest, encoder.arrays)


def load(path: str | PathLike[str], *, max_bytes: int = 4 * 2**30) -> Any:
    """Return the estimator that `save` wrote.

    Files from strangers are safe to load: no code of theirs runs, and nothing is read before its size is known.

    Parameters
    ----------
    path : path
        The model file.
    max_bytes : int, default 4 GiB
        Refuse a file that holds more.

    Returns
    -------
    estimator
        Whatever it computes is equal, bit by bit on the same computer, to what the saved one computes.

    Raises
    ------
    ModelFileError
        If the file is damaged, changed, too large, too new, or no model file.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import princomp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.princomp")
    ...     princomp.save(princomp.PCA(n_components=2, scale=True), path)
    ...     princomp.load(path)
    PCA(n_components=2, scale=True)
    """
    with naming(path, "loaded"), archive.opened(path, max_bytes) as file:
        manifest = _checked_manifest(file.manifest)
        model = MODELS[manifest["class"]]
        parameters, fitted = manifest["parameters"], manifest["fitted"]
        known = _types(model.estimator)
        _same_names(parameters, known, tuple(known), "parameter")
        arrays = file.arrays(manifest["arrays"])
        parameters = {key: decode(item, arrays) for key, item in parameters.items()}
        _check_parameters(model.estimator, parameters)
        estimator = model.estimator(**parameters)
        if fitted is not None:
            attributes = {key: decode(item, arrays) for key, item in fitted.items()}
            _check_attributes(model, attributes)
            vars(estimator).update(attributes)
    return estimator


def _versions() -> dict[str, str]:
    import numpy
    import sklearn

    return {"princomp": __version__, "numpy": numpy.__version__, "scikit-learn": sklearn.__version__}


def _types(estimator: type) -> dict[str, Any]:
    """Return the types of the parameters that are saved, by name, as the constructor declares them."""
    hints = get_type_hints(estimator.__init__)  # type: ignore[misc]
    return {name: hint for name, hint in hints.items() if name not in (*NOT_SAVED, "return")}


def _parameters(estimator: Any) -> list[tuple[str, Any]]:
    parameters = {name: getattr(estimator, name) for name in _types(type(estimator))}
    if not isinstance(parameters.get("random_state"), Integral):
        parameters["random_state"] = None  # the state of a generator is no setting
    _check_parameters(type(estimator), parameters)
    return list(parameters.items())


def _fitted(estimator: Any, *, parts: bool) -> list[tuple[str, Any]]:
    """Return fitted attributes, in the order of the table, or nothing if there was no fit."""
    model = MODELS[type(estimator).__name__]
    public = {name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")}
    order = [*model.fitted, *sorted(public - model.fitted.keys())]
    attributes = {name: vars(estimator)[name] for name in order if name in vars(estimator)}
    if attributes:
        _check_attributes(model, attributes)
    kinds = model.fitted
    return [each for each in attributes.items() if parts or getattr(kinds[each[0]], "axes", None) != CELLS]


def _checked_manifest(manifest: Any) -> dict[str, Any]:
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError("its manifest is not that of a princomp model")
    if manifest.get("version") != VERSION:
        raise ModelFileError(
            f"it is of format version {manifest.get('version')!r:.20}, but this princomp, {__version__}, reads version "
            f"{VERSION}. Use the princomp that wrote it, or a newer one"
        )
    _same_names(manifest, MANIFEST, (), "entry")
    for key, hint in MANIFEST.items():
        if not matches(manifest[key], hint):
            raise ModelFileError(f'the entry "{key}" of its manifest is of the wrong type')
    if manifest["class"] not in MODELS:
        raise ModelFileError(
            f"it holds a {manifest['class']!r:.50}, which is none of the estimators that model files hold: "
            f"{', '.join(MODELS)}"
        )
    return manifest


def _same_names(given: Mapping[str, Any], known: Mapping[str, Any], optional: tuple[str, ...], what: str) -> None:
    """Refuse names that are not known, and the lack of one that is not optional."""
    for name in sorted(given.keys() - known.keys()):
        raise ModelFileError(
            f"there is an unknown {what}, {name!r:.50}. A newer princomp than {__version__} may know it"
        )
    for name in sorted(known.keys() - given.keys() - set(optional)):
        raise ModelFileError(f"the {what} {name} is missing")


def _check_parameters(estimator: type, parameters: Mapping[str, Any]) -> None:
    known = _types(estimator)
    for name, value in parameters.items():
        if not matches(value, known[name]):
            raise ModelFileError(f"the parameter {name} has a value of the wrong type, {value!r:.50}")


def _check_attributes(model: Model, attributes: Mapping[str, Any]) -> None:
    """Refuse attributes of the wrong kind, out of their range, or whose shapes do not go together."""
    optional = tuple(name for name, kind in model.fitted.items() if kind.optional)
    _same_names(attributes, model.fitted, optional, "attribute")
    for name, wrong in faults(attributes, model.fitted):
        raise ModelFileError(f"the attribute {name} {wrong}")
