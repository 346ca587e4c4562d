#!/bin/sh
# Run one campaign from its YAML file to its verdict. On a later call the spent packet is shown to be refused first,
# and the next attempt is frozen and run.
set -eu
campaign=$1
labctl=.venv/bin/labctl

show() { printf '\n$ labctl %s\n' "$*"; "$labctl" "$@"; }

spent=$("$labctl" status --spent-of "$campaign")
if [ -n "$spent" ]; then
  echo "The last packet of $campaign is spent; a second run of it is refused:"
  status=0
  show consume-and-run "$spent" || status=$?
  echo "exit status $status"
  [ "$status" -eq 3 ] || { echo "demo: $spent: expected exit status 3, got $status; read the lines above" >&2; exit 1; }
  show packet freeze "$campaign" --follows "$spent"
else
  show prereg validate "$campaign"
  show plan "$campaign"
  show packet freeze "$campaign"
fi
show consume-and-run "$campaign"
