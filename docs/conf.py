"""Settings of the documentation. `make docs` builds it."""

import re
from importlib.metadata import version as installed_version

from latex2mathml.converter import convert

project = "princomp"
author = "The princomp developers"
copyright = "2026, the princomp developers"
version = release = installed_version("princomp")

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.viewcode"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "benchmarks"]  # benchmarks: fragments that pages include

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False  # the pages list what they want to list

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "princomp"
html_theme_options = {"navigation_with_keys": False, "show_prev_next": False, "secondary_sidebar_items": ["page-toc"]}


def _keep_bars(app, what, name, obj, options, lines):
    """Let docstrings write |w| as they do on paper: a bar in reStructuredText would begin a substitution."""
    for number, text in enumerate(lines):
        if not text.lstrip().startswith((">>>", "...")):
            parts = re.split(r"(`+[^`]*`+)", text)
            parts[::2] = [re.sub(r"(?<!\\)\|", r"\|", part) for part in parts[::2]]
            lines[number] = "".join(parts)


def _math(self, node):
    """Write a formula as MathML, which browsers draw themselves: no script, and nothing from the network."""
    from docutils.nodes import SkipNode

    inline = node.tagname == "math"
    formula = convert(node.astext().replace(r"\|", r"\Vert "), display="inline" if inline else "block")
    self.body.append(formula if inline else f'<div style="margin: 1em 0; overflow-x: auto">{formula}</div>')
    raise SkipNode


def setup(app):
    app.connect("autodoc-process-docstring", _keep_bars)
    app.add_html_math_renderer("mathml", inline_renderers=(_math, None), block_renderers=(_math, None))
