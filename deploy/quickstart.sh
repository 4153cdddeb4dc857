#!/usr/bin/env bash
# From a fresh Debian 12 to sandboxed runs: installs packages, builds, starts `stockade up`, runs HumanEval (164 problems, a
# sandbox each), shows every egress decision and verifies the audit trail. Leaves nothing running.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
build=${STOCKADE_BUILD:-$root/build}
work=$(mktemp -d /tmp/stockade-quickstart.XXXXXX)
run=$work/run
[ "$(stat -f -c %T /dev/shm 2>/dev/null)" != tmpfs ] || run=$(mktemp -d /dev/shm/stockade-quickstart.XXXXXX)
chmod 0711 "$work"
up=

stop() {
  local status=$?
  if [ -n "$up" ] && kill -TERM "$up" 2>/dev/null; then wait "$up" || status=$?; fi
  [ $status -eq 0 ] || { echo "--- log of stockade up" >&2; tail -n 30 "$work/up.log" >&2 || true; }
  rm -rf "$work" "$run"
  exit $status
}
trap stop EXIT

bold='' plain=''
[ ! -t 1 ] || { bold=$'\033[1m'; plain=$'\033[0m'; }
step() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }
stockade() { "$build/deploy/standalone/stockade" "$@"; }

step "packages and build"
deploy/packages.sh build run demo
deploy/build.sh "$build" -DSTK_TESTS=OFF

step "what this host has"
stockade doctor

step "stockade up"
export STOCKADE_STATE_DIR=$work/state
STOCKADE_TOKEN=$(stockade token create --state-dir "$work/state" --label quickstart --scopes all)
export STOCKADE_TOKEN
"$build/deploy/standalone/stockade" up --state-dir "$work/state" --set run_dir="$run" --listen 127.0.0.1:0 \
  >"$work/ready" 2>"$work/up.log" &
up=$!
for _ in $(seq 300); do
  grep -q '^ready' "$work/ready" && break
  kill -0 "$up" 2>/dev/null || { wait "$up"; exit 1; }
  sleep 0.1
done
STOCKADE_URL=$(awk '/^ready/ {print $2}' "$work/ready")
export STOCKADE_URL
echo "ready at $STOCKADE_URL"

step "turn it on for one agent that may reach api.vendor.com and nothing else"
cat >"$work/config.json" <<'JSON'
{"enabled": true, "agents": {"humaneval": {"allow": ["api.vendor.com"]}}, "reason": "quickstart"}
JSON
stockade config set "$work/config.json"

step "plan (nothing is done)"
stockade plan humaneval -- python3 job.py

step "HumanEval: 164 reference solutions, a sandbox each"
deploy/humaneval.py fetch "$work/humaneval"
deploy/humaneval.py runs "$work/humaneval" >"$work/runs.jsonl"
stockade submit "$work/runs.jsonl" --wait >"$work/results.jsonl"
deploy/humaneval.py score "$work/results.jsonl"

step "the same with every body replaced by pass"
deploy/humaneval.py runs "$work/humaneval" --empty >"$work/empty.jsonl"
stockade submit "$work/empty.jsonl" --wait >"$work/empty-results.jsonl"
deploy/humaneval.py score "$work/empty-results.jsonl"

step "a job that tries a host which is not listed"
stockade run humaneval --egress -- python3 -c '
import urllib.request
try:
    urllib.request.urlopen("https://example.com/", timeout=5)
except OSError as error:
    print("refused:", error)'

step "audit trail"
stockade audit tail --limit 6
stockade audit verify --state-dir "$work/state"

kill -TERM "$up"
wait "$up"
up=
step "done in ${SECONDS} s; nothing is left running"
