#!/usr/bin/env bash
# Make the tables of docs/error-rates.md anew; with 20,000 campaigns a cell about half an hour on two idle cores.
#
# Usage: scripts/error-rates.sh [OPTIONS OF labctl simulate]
set -euo pipefail
cd "$(dirname "$0")/.."
page=docs/error-rates.md
table=$(mktemp)
trap 'rm -f "$table"' EXIT
.venv/bin/labctl simulate "$@" | tee "$table"
printf 'Made by `labctl simulate %s` of commit %s.\n\n' "$*" "$(git rev-parse --short=12 HEAD)" | sed 's/ `/`/' >"$table.page"
cat "$table" >>"$table.page"
sed -i -e '/^<!-- tables -->$/,/^<!-- end of tables -->$/{/^<!-- /!d}' -e "/^<!-- tables -->$/r $table.page" "$page"
rm -f "$table.page"
