#!/usr/bin/env bash
# Runs all tests, or a part of them: tests/run.sh [static|unit|sanitize|fuzz|conformance|integration|adversarial|chaos|FILE.py...]
# Installs what they need from Debian and PyPI, builds, and ends with one line that counts.
set -euo pipefail
cd "$(dirname "$0")/.."
export STOCKADE_BUILD=${STOCKADE_BUILD:-$PWD/build}
fuzz_seconds=${FUZZ_SECONDS:-20}
py=/usr/bin/python3
passed=0 failed=0 failures=()

say() { printf '\n== %s (%s s)\n' "$*" "$SECONDS"; }

step() { # step NAME COMMAND...: one counted result
  local name=$1; shift
  local start=$SECONDS
  if "$@"; then
    passed=$((passed + 1)); printf 'ok   %s (%s s)\n' "$name" "$((SECONDS - start))"
  else
    failed=$((failed + 1)); failures+=("$name"); printf 'FAIL %s (%s s)\n' "$name" "$((SECONDS - start))"
  fi
}

prepare() {
  deploy/packages.sh build run test
  say "build"
  deploy/build.sh "$STOCKADE_BUILD"
}

pytests() { # pytests PATH...
  local out; out=$(mktemp)
  local rc=0
  $py -m pytest -q -p no:cacheprovider --durations=5 "$@" 2>&1 | tee "$out" || rc=1
  local line; line=$(grep -E '^[0-9]+ (passed|failed|error)|, [0-9]+ (passed|failed|error)' "$out" | tail -n 1)
  local p f e
  p=$(grep -oE '[0-9]+ passed' <<<"$line" | grep -oE '[0-9]+' || echo 0)
  f=$(grep -oE '[0-9]+ failed' <<<"$line" | grep -oE '[0-9]+' || echo 0)
  e=$(grep -oE '[0-9]+ errors?' <<<"$line" | grep -oE '[0-9]+' || echo 0)
  rm -f "$out"
  passed=$((passed + p)); failed=$((failed + f + e))
  if [ "$rc" -ne 0 ]; then
    [ $((f + e)) -gt 0 ] || failed=$((failed + 1))
    failures+=("pytest $*")
  fi
}

ctests() { # ctests BUILD_DIR [ctest options]
  local dir=$1; shift
  local out; out=$(mktemp)
  local rc=0
  ctest --test-dir "$dir" --output-on-failure -j2 "$@" 2>&1 | tee "$out" | grep -vE '^ *(Start|Test project)' || true
  grep -q '100% tests passed' "$out" || rc=1
  local total fails
  total=$(grep -oE 'out of [0-9]+' "$out" | grep -oE '[0-9]+' | tail -n 1 || echo 0)
  fails=$(grep -oE '[0-9]+ tests failed' "$out" | grep -oE '[0-9]+' | tail -n 1 || echo 0)
  rm -f "$out"
  passed=$((passed + total - fails)); failed=$((failed + fails))
  if [ "$rc" -ne 0 ]; then failures+=("ctest $dir"); [ "$fails" -gt 0 ] || failed=$((failed + 1)); fi
}

part_static() { say "static checks"; pytests tests/unit/tree; }
part_unit() { say "unit tests"; ctests "$STOCKADE_BUILD" -E '^conformance_'; }
part_conformance() { say "port conformance"; ctests "$STOCKADE_BUILD" -R '^conformance_'; pytests tests/conformance; }
part_integration() { say "integration"; pytests tests/integration; }
part_adversarial() { say "adversarial"; pytests tests/adversarial; }
part_chaos() { say "chaos"; pytests tests/chaos; }

part_sanitize() {
  for kind in ASAN TSAN; do
    say "unit and conformance tests under $kind"
    step "build with $kind" deploy/build.sh "$STOCKADE_BUILD-${kind,,}" -DSTK_$kind=ON -DCMAKE_BUILD_TYPE=Debug
    TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/tests/tsan.supp" ASAN_OPTIONS="detect_leaks=1" ctests "$STOCKADE_BUILD-${kind,,}"
  done
}

part_fuzz() {
  say "fuzzing, $fuzz_seconds s a target"
  step "build the fuzz targets" env CC=clang-14 deploy/build.sh "$STOCKADE_BUILD-fuzz" -DSTK_FUZZ=ON -DSTK_TESTS=ON -DCMAKE_BUILD_TYPE=Debug
  local target
  for target in "$STOCKADE_BUILD-fuzz"/tests/fuzz/fuzz_*; do
    [ -f "$target" ] && [ -x "$target" ] || continue
    local name=${target##*/}; local corpus; corpus=$(mktemp -d)
    step "$name" fuzz_one "$target" "$corpus" "tests/fuzz/corpus/${name#fuzz_}"
    rm -rf "$corpus"
  done
}

fuzz_one() { # TARGET SCRATCH SEEDS
  local log=$2.log
  if "$1" -max_total_time="$fuzz_seconds" -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$2/" "$2" "$3" >"$log" 2>&1; then
    tail -n 1 "$log"; rm -f "$log"; return 0
  fi
  tail -n 40 "$log"; rm -f "$log"; return 1
}

all="static unit conformance integration adversarial chaos sanitize fuzz"
prepare
for part in ${*:-$all}; do
  case $part in
    static|unit|conformance|integration|adversarial|chaos|sanitize|fuzz) "part_$part" ;;
    *.py|*.py::*|*/) pytests "tests/${part#tests/}" ;;
    *) echo "tests/run.sh: no part \"$part\"; there are: $all, or a test file below tests/" >&2; exit 2 ;;
  esac
done

for name in "${failures[@]}"; do echo "failed: $name"; done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
