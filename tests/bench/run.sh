#!/usr/bin/env bash
# Prints figures, one JSON line each: tests/bench/run.sh [oci|bus|store|runs|submit|humaneval|small|egress|egress_peers...]; no argument: all.
# A bench is not a test: it fails only when what it measures does not work. Run it on a machine that does nothing else.
set -euo pipefail
cd "$(dirname "$0")/../.."
export STOCKADE_BUILD=${STOCKADE_BUILD:-$PWD/build}
export STOCKADE_LIBEXEC=$STOCKADE_BUILD/proto:$STOCKADE_BUILD/workers/runtime:$STOCKADE_BUILD/egress-proxy
bin=$STOCKADE_BUILD/tests/bench
rounds=${ROUNDS:-60}

py() { /usr/bin/python3 "tests/bench/bench_$1.py" "${@:2}"; }

# Short-lived files in memory, as /run is on a host that boots: for the sandboxes and for the bare runs beside them.
in_memory() { TMPDIR=$([ "$(stat -f -c %T /dev/shm)" = tmpfs ] && echo /dev/shm || echo /tmp) "$@"; }

one() {
  case $1 in
    oci)
      for runtime in crun runc; do
        command -v $runtime >/dev/null || PATH=$PATH:/usr/sbin command -v $runtime >/dev/null || continue
        in_memory "$bin/bench_oci" "$rounds" 1 $runtime -- /usr/bin/true
        in_memory "$bin/bench_oci" "$rounds" "$(nproc)" $runtime -- /usr/bin/true
      done ;;
    bus) "$bin/bench_bus" 5000 1 1000; "$bin/bench_bus" 50000 256 1000 ;;
    store) "$bin/bench_store" sqlite 200000 500 ;;
    runs) py runs "$rounds" ;;
    submit) py submit 20000 ;;
    humaneval) py humaneval 5 ;;
    small) py small ;;
    egress) py egress ;;
    egress_peers) py egress_peers ;;
    *) echo "tests/bench/run.sh: no bench \"$1\"; there are: $all" >&2; exit 2 ;;
  esac
}

all="oci bus store runs submit humaneval small egress egress_peers"
deploy/packages.sh build run test >&2
deploy/build.sh "$STOCKADE_BUILD" -DSTK_TESTS=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo >&2
echo "{\"name\":\"machine\",\"processors\":$(nproc),\"kernel\":\"$(uname -r)\",\"load\":$(cut -d' ' -f1 /proc/loadavg)}"
for name in ${*:-$all}; do one "$name"; done
