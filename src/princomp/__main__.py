"""``python -m princomp`` is the command ``princomp``."""

from princomp.cli import main

if __name__ == "__main__":
    main()
