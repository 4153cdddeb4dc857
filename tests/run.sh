#!/usr/bin/env bash
# Runs all tests, or a part of them: tests/run.sh [static|unit|sanitize|fuzz|conformance|integration|adversarial|chaos|FILE.py...]
# Installs what they need from Debian and PyPI, builds, and ends with one line that counts.
set -euo pipefail
cd "$(dirname "$0")/.."
export STOCKADE_BUILD=${STOCKADE_BUILD:-$PWD/build}
fuzz_seconds=${FUZZ_SECONDS:-20}
fuzz_seconds_proxy=${FUZZ_SECONDS:-60} # what reads the bytes of sandboxes and origins
fuzz_proxy=" fuzz_head fuzz_chunked fuzz_response fuzz_sni fuzz_dns fuzz_policy fuzz_control "
py=/usr/bin/python3
passed=0 failed=0 failures=()

say() { printf '\n== %s (%s s)\n' "$*" "$SECONDS"; }

built() { # built DIR [cmake options]: false, and one failure, when it does not build
  deploy/build.sh "$1" -DSTK_TESTS=ON "${@:2}" && return 0
  failed=$((failed + 1)); failures+=("build in $1")
  return 1
}

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
  deploy/build.sh "$STOCKADE_BUILD" -DSTK_TESTS=ON
  if [ "$(id -u)" -ne 0 ]; then echo "tests/run.sh: tests of sandboxes and namespaces need root" >&2; exit 1; fi
}

counted() { # counted WORD FILE: N of "N passed" in pytest's last line
  local line; line=$(grep -E '^[0-9]+ (passed|failed|error)|, [0-9]+ (passed|failed|error)' "$2" | tail -n 1 || true)
  grep -oE "[0-9]+ $1" <<<"$line" | grep -oE '[0-9]+' || echo 0
}

pytests() { # pytests PATH...: what fails is tried once more, alone, and named: a machine may have been busy
  local out cache rc=0; out=$(mktemp); cache=$(mktemp -d)
  [ -d "${1%%::*}" ] && ! compgen -G "$1/**/test_*.py" >/dev/null && ! compgen -G "$1/test_*.py" >/dev/null && return 0
  local options=(-q -o cache_dir="$cache" -o faulthandler_timeout=600 --durations=5)
  timeout -k 30 2400 $py -m pytest "${options[@]}" "$@" 2>&1 | tee "$out" || rc=1
  passed=$((passed + $(counted passed "$out")))
  if [ "$rc" -ne 0 ] && grep -qE '^(FAILED|ERROR) ' "$out"; then
    grep -E '^(FAILED|ERROR) ' "$out" | cut -c1-160 | sed 's/^/second try: /'
    rc=0
    timeout -k 30 1200 $py -m pytest "${options[@]}" --last-failed --last-failed-no-failures none "$@" 2>&1 | tee "$out" || rc=1
    passed=$((passed + $(counted passed "$out")))
  fi
  if [ "$rc" -ne 0 ]; then
    local bad=$(($(counted failed "$out") + $(counted 'errors?' "$out")))
    failed=$((failed + (bad > 0 ? bad : 1)))
    failures+=("pytest $*")
  fi
  rm -rf "$out" "$cache"
}

ctests() { # ctests BUILD_DIR [ctest options]
  local dir=$1; shift
  local out; out=$(mktemp)
  local rc=0
  ctest --test-dir "$dir" --output-on-failure -j2 --repeat until-pass:2 "$@" 2>&1 | tee "$out" | grep -vE '^ *(Start|Test project)' || true
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
    if ! built "$STOCKADE_BUILD-${kind,,}" -DSTK_$kind=ON -DCMAKE_BUILD_TYPE=Debug; then continue; fi
    TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/tests/tsan.supp" ASAN_OPTIONS="detect_leaks=1" ctests "$STOCKADE_BUILD-${kind,,}"
  done
}

part_fuzz() {
  say "fuzzing, $fuzz_seconds to $fuzz_seconds_proxy s a target"
  export CC=clang-14
  built "$STOCKADE_BUILD-fuzz" -DSTK_FUZZ=ON -DCMAKE_BUILD_TYPE=Debug || return 0
  unset CC
  local target
  local pair=() scratch; scratch=$(mktemp -d)
  for target in "$STOCKADE_BUILD-fuzz"/tests/fuzz/fuzz_*; do
    [ -f "$target" ] && [ -x "$target" ] || continue
    fuzz_begin "$target" "$scratch/${target##*/}" &
    pair+=("$!:${target##*/}")
    if [ ${#pair[@]} -eq 2 ]; then fuzz_end "$scratch" "${pair[@]}"; pair=(); fi
  done
  [ ${#pair[@]} -eq 0 ] || fuzz_end "$scratch" "${pair[@]}"
  rm -rf "$scratch"
}

fuzz_begin() { # TARGET SCRATCH
  local seeds=tests/fuzz/corpus/${1##*/fuzz_} seconds=$fuzz_seconds
  mkdir -p "$2"
  [[ $fuzz_proxy != *" ${1##*/} "* ]] || seconds=$fuzz_seconds_proxy
  [ -d "$seeds" ] || seeds=
  "$1" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$2/" "$2" $seeds >"$2.log" 2>&1
}

fuzz_end() { # SCRATCH PID:NAME...
  local scratch=$1 one; shift
  for one in "$@"; do
    if ! step "${one#*:}" wait "${one%%:*}"; then :; fi
    if grep -q 'SUMMARY\|ERROR' "$scratch/${one#*:}.log"; then tail -n 40 "$scratch/${one#*:}.log"; else tail -n 1 "$scratch/${one#*:}.log"; fi
  done
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

for name in ${failures[@]+"${failures[@]}"}; do echo "failed: $name"; done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
