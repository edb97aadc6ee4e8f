"""``python -m engine.cli``."""

import sys

from engine.cli.main import main

__all__ = ()

if __name__ == "__main__":
    sys.exit(main())
