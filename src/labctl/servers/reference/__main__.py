"""`python -m labctl.servers.reference`: start the embedded endpoint and serve until SIGTERM."""

import logging
import os
import sys
import time

from labctl.servers.reference.options import read_options

_STARTED_S = time.time()
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")


def main() -> int:
    """Read the options, hold the BLAS to one thread, serve."""
    options = read_options(sys.argv[1:])
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(asctime)s %(message)s")
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    from labctl.servers.reference.serve import serve  # noqa: PLC0415 (a BLAS reads its variables when numpy is imported)

    return serve(options, _STARTED_S)


if __name__ == "__main__":
    sys.exit(main())
