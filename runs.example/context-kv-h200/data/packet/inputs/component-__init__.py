"""The worker's side of component and probe campaigns: the standard library and torch, nothing else of labctl.

It is exported into each leg and runs in the preregistered interpreter, where labctl need not be installed. A worker
file imports `labctl.component.worker` and ends in `worker = Worker(...)`; docs/component-workers.md shows one.
"""
