"""`python -m kueuecore` is the command `kueuecore`."""

import sys

from kueuecore.cli import main

sys.exit(main())
