"""Doctests in Markdown: the fences around a code block are not part of its expected output."""

import doctest
import re


class FencedParser(doctest.DocTestParser):
    """The standard parser, blind to lines that open or close a fenced block."""

    def parse(self, string, name="<string>"):
        """Split the text into examples and the text between them."""
        return super().parse(re.sub(r"(?m)^[ \t]*(```|~~~|:::).*$", "", string), name)


doctest.DocTestParser = FencedParser  # the class that pytest looks up for text files
