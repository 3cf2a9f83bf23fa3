"""Print the oldest versions that pyproject.toml allows, as pins for pip: of the core, and of the extras named.

Usage: python tools/lowest.py [EXTRA ...]
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements(extras):
    """Yield what the core and these extras need, extras of our own followed."""
    todo = [*PROJECT["dependencies"], *(line for name in extras for line in PROJECT["optional-dependencies"][name])]
    for line in todo:
        own = re.fullmatch(r"princomp\[(.+)\]", line)
        if own:
            todo += [each for name in own[1].split(",") for each in PROJECT["optional-dependencies"][name]]
        else:
            yield line


def pin(line):
    """numpy>=2.0 -> numpy==2.0.*: the oldest minor version, with its corrections."""
    name, version = re.fullmatch(r"([\w.-]+(?:\[[\w,]+\])?)>=([\d.]+)(?:,.*)?", line).groups()
    return f"{name}=={version}" if version.count(".") > 1 else f"{name}=={version}.*"


if __name__ == "__main__":
    for found in dict.fromkeys(map(pin, requirements(sys.argv[1:]))):
        sys.stdout.write(f"{found}\n")
