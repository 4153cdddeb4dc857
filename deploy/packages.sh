#!/usr/bin/env bash
# Installs Debian packages: deploy/packages.sh build|run|demo|test [...]. The one list of what Stockade needs.
set -euo pipefail

build="build-essential cmake ninja-build pkg-config ccache libevent-dev libssl-dev libcjson-dev libyaml-dev libsqlite3-dev
  libcurl4-openssl-dev libseccomp-dev libcap-dev libcmocka-dev libpq-dev"
run="crun runc uidmap python3 ca-certificates"
demo="python3-pip"
test="python3-pytest python3-venv python3-pip clang-14 clang-format-14 libclang-rt-14-dev curl jq iproute2 nftables procps
  debootstrap strace git postgresql wget openssl nodejs node-undici squid tinyproxy-bin"

wanted=
for kind in "${@:-build}"; do
  case $kind in
    build) wanted+=" $build" ;;
    run) wanted+=" $run" ;;
    demo) wanted+=" $demo" ;;
    test) wanted+=" $test" ;;
    *) echo "usage: deploy/packages.sh [build|run|demo|test]..." >&2; exit 2 ;;
  esac
done

missing=()
for package in $wanted; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "deploy/packages.sh: run as root, or install: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "installing ${#missing[@]} Debian packages"
log=$(mktemp)
policy=/usr/sbin/policy-rc.d  # while it says 101, no package starts a service
[ -e "$policy" ] && policy=
trap 'rm -f "$log"; [ -z "$policy" ] || "${as_root[@]}" rm -f "$policy"' EXIT
[ -z "$policy" ] || printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" install -m 755 /dev/stdin "$policy"
if ! { "${as_root[@]}" apt-get -qq update &&
       "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "deploy/packages.sh: the packages could not be installed: ${missing[*]}" >&2
  exit 1
fi
