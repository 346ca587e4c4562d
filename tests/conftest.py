"""Fixtures for every test; the suite clears the environment that it depends on."""

import os

from labctl.host.devices.affinity import AFFINITY_VARIABLES

# before numpy is imported anywhere: the embedded endpoint pins itself, and tests that use its decoder must not differ
os.environ["OPENBLAS_NUM_THREADS"] = "1"
for name in ("PYTHONPATH", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "PROMETHEUS_MULTIPROC_DIR", "COLUMNS"):
    os.environ.pop(name, None)
for name in (name for names in AFFINITY_VARIABLES.values() for name in names):
    os.environ.pop(name, None)
