#!/usr/bin/env bash
# Configures and builds: deploy/build.sh [BUILD_DIR [cmake options...]]. Default folder: build.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=${1:-build}
[ $# -gt 0 ] && shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { cmake -S . -B "$dir" -G Ninja "$@" && ninja -C "$dir"; } >"$log" 2>&1; then
  tail -n 60 "$log" >&2
  echo "deploy/build.sh: the build in $dir failed" >&2
  exit 1
fi
