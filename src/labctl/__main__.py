"""`python -m labctl`: the command line."""

from labctl.cli.main import main

main()
