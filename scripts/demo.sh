#!/bin/sh
# Run one campaign from its YAML file to its verdict. On a later call the spent packet is shown to be refused first,
# and the next attempt is frozen and run.
set -eu
campaign=$1
labctl=.venv/bin/labctl

show() { printf '\n$ labctl %s\n' "$*"; "$labctl" "$@"; }

# The last packet of the campaign, if it is spent.
spent=$("$labctl" status "$campaign" --json | .venv/bin/python -c '
import json, sys
packets = [packet for packet in json.load(sys.stdin) if packet["kind"] == "real"]
print(packets[-1]["packet"] if packets and packets[-1]["state"] != "unconsumed" else "")')

if [ -n "$spent" ]; then
  echo "The last packet of $campaign is spent. A second run of it is refused:"
  status=0
  show consume-and-run "$spent" || status=$?
  echo "exit status $status"
  if [ "$status" -ne 3 ]; then
    echo "demo: packet $spent: expected exit status 3, got $status; read the lines above" >&2
    exit 1
  fi
  show packet freeze "$campaign" --follows "$spent"
else
  show prereg validate "$campaign"
  show plan "$campaign"
  show packet freeze "$campaign"
fi
status=0
show consume-and-run "$campaign" || status=$?
case $status in
  0) echo "exit status 0: every registered gate passed" ;;
  6) echo "exit status 6: the run is complete and sealed, and a registered gate did not pass on this machine, today" ;;
  *) exit "$status" ;;
esac
