#!/usr/bin/env bash
# Make the runs of runs.example/ anew, in a neutral place and under a neutral host name: sealed bytes hold both.
#
# Usage, as root, on a quiet machine, with the commit that the examples shall come from checked out and nothing uncommitted:
#   scripts/make-examples.sh calibration    # runs the calibrations and pools campaigns/noise/; commit both, then
#   scripts/make-examples.sh                # everything else; the quickstart's power rests on the noise of this host
# It clones into /srv/labctl/labctl, serves vLLM from /srv/labctl/serving, and replaces runs.example/ here.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
place=/srv/labctl/labctl
python=/usr/bin/python3.11

if [ "${1:-}" != "--renamed" ]; then
  exec unshare --uts "$0" --renamed "$@"
fi
what=${2:-examples}
hostname bench
umask 022
rm -rf "$place"
mkdir -p "$(dirname "$place")"
git clone -q --no-hardlinks "$here" "$place"
cd "$place"
"$python" -m venv .venv
.venv/bin/pip install --quiet --disable-pip-version-check --constraint requirements.lock --editable '.[torch]' </dev/null
scripts/serving-environment.sh /srv/labctl/serving
mkdir -m 700 .labctl
ln -s /srv/labctl/serving .labctl/serving
export HOME=/srv/labctl PATH=$place/.venv/bin:/usr/bin:/bin

keep() { # keep CAMPAIGN NAME EXPECTED-STATUS: run a campaign, the id of its file, and keep its run
  status=0
  file=campaigns/$1/campaign.yaml
  [ -f "$file" ] || file=campaigns/calibration/${1%-calibration}.yaml
  [ -f "$file" ] || file=campaigns/${1%-cpu}/cpu.yaml
  labctl packet freeze "$file"
  labctl consume-and-run "$file" || status=$?
  if [ "$status" -ne "$3" ]; then
    echo "make-examples: $1: expected exit status $3, got $status; look at its report" >&2
    exit 1
  fi
  rm -rf "$here/runs.example/$2"
  mkdir -p "$here/runs.example"
  cp -r .labctl/runs/"$1"-[0-9a-f]* "$here/runs.example/$2"
  chmod -R u=rwX,go=rX "$here/runs.example/$2"
}

if [ "$what" = calibration ]; then
  keep quickstart-calibration quickstart-calibration 0
  keep vllm-cpu-calibration vllm-cpu-calibration 0
  mkdir -p "$here/campaigns/noise"
  rm -f "$here/campaigns/noise/any-cpu.json" "$here/campaigns/noise/any-cpu-vllm.json"
  labctl power pool "$here/runs.example/quickstart-calibration" --out "$here/campaigns/noise/any-cpu.json"
  labctl power pool "$here/runs.example/vllm-cpu-calibration" --out "$here/campaigns/noise/any-cpu-vllm.json"
  exit 0
fi

keep quickstart quickstart 0
keep broken-server broken-server 4
keep vllm-cpu-ngram vllm-cpu-ngram "${VLLM_STATUS:-0}"
keep vllm-cpu-kv vllm-cpu-kv 0
keep vllm-cpu-chat vllm-cpu-chat 0
keep vllm-cpu-prefix vllm-cpu-prefix 6 # the gate `cold` refuses it
keep context-kv-cpu context-kv-cpu 0
keep probe-cpu probe-cpu 0

# The refused one: a spent packet, and a file with three faults; what labctl said stands beside the commands.
refused=$here/runs.example/refused
rm -rf "$refused"
mkdir -p "$refused"
sed -e 's/^treatment:/treatmnt:/' -e 's/requests_per_start: 13/requests_per_start: 12/' -e 's/max_tokens: 128/max_tokens: 010/' \
  campaigns/quickstart/campaign.yaml >campaigns/quickstart/refused.yaml
cp campaigns/quickstart/refused.yaml "$refused/refused.yaml"
spent=$(basename "$(ls -d .labctl/authorization/markers/*.json | head -1)" .json)
{
  for command in "labctl prereg validate campaigns/quickstart/refused.yaml" "labctl consume-and-run $spent"; do
    status=0
    echo "\$ $command"
    $command 2>&1 | grep -v '^\[ ' || true
    $command >/dev/null 2>&1 || status=$?
    echo "exit status $status"
  done
} >"$refused/refusals.txt"
cat "$refused/refusals.txt"
