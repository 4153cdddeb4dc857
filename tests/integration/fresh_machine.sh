#!/usr/bin/env bash
# Runs a command of this checkout (default: deploy/quickstart.sh) on a bare Debian 12: a debootstrap root, cached, copied, and entered by
# pivot_root in namespaces of its own. A chroot would not do: the kernel refuses user namespaces inside one.
# usage: tests/integration/fresh_machine.sh [command...]     environment: KEEP=1 keeps the copy, MIRROR names the Debian mirror
set -euo pipefail
cd "$(dirname "$0")/../.."
source=$PWD
cache=${XDG_CACHE_HOME:-$HOME/.cache}/stockade-tests
base=$cache/debian-12-base.tar
command=("${@:-deploy/quickstart.sh}")
[ "$(id -u)" -eq 0 ] || { echo "fresh_machine.sh: needs root" >&2; exit 1; }
mirror=${MIRROR:-$(sed -nE 's#^deb (\[[^]]*\] )?(https?://[^ ]+) .*#\2#p; s#^URIs: *([^ ]+).*#\1#p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1 || true)}
[ -n "$mirror" ] || { echo "fresh_machine.sh: name a Debian mirror in MIRROR: the package sources of this machine show none" >&2; exit 1; }

if [ ! -f "$base" ]; then
  echo "== bare Debian 12 from $mirror (once; kept in $cache)"
  mkdir -p "$cache"
  fresh=$(mktemp -d "$cache/bootstrap.XXXXXX")
  trap 'rm -rf "$fresh"' EXIT
  debootstrap --variant=minbase bookworm "$fresh/root" "$mirror" >"$cache/debootstrap.log" 2>&1 || { tail -n 20 "$cache/debootstrap.log" >&2; exit 1; }
  tar -C "$fresh/root" -cf "$base.part" .
  mv "$base.part" "$base"
  rm -rf "$fresh"
  trap - EXIT
fi

work=$(mktemp -d /var/tmp/stockade-fresh.XXXXXX)
cleanup() { if [ "${KEEP:-0}" = 1 ]; then echo "kept: $work"; else rm -rf --one-file-system "$work"; fi; }
trap cleanup EXIT
root=$work/root
mkdir "$root"
tar -C "$root" -xf "$base"
mkdir -p "$root/srv/stockade"
tar -C "$source" --exclude='./build*' --exclude=./.git --exclude=__pycache__ -cf - . | tar -C "$root/srv/stockade" -xf -
# What a machine has from its administrator: names, certificates, package sources and proxies.
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
rm -rf "$root/etc/apt/sources.list" "$root/etc/apt/sources.list.d"
cp -aL /etc/apt/sources.list* /etc/apt/apt.conf.d "$root/etc/apt/" 2>/dev/null || true
mkdir -p "$root/etc/ssl"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/machine.crt"
[ ! -f /etc/pip.conf ] || cp -L /etc/pip.conf "$root/etc/"

cat >"$work/enter.sh" <<'INSIDE'
set -euo pipefail
root=$1; shift
mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=0755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mkdir -p old
pivot_root . old
umount -l /old
rmdir /old
cd /srv/stockade
exec env -i HOME=/root USER=root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 TERM=dumb \
  PIP_CERT=/etc/ssl/machine.crt SSL_CERT_FILE=/etc/ssl/machine.crt ${PIP_INDEX_URL:+PIP_INDEX_URL="$PIP_INDEX_URL"} ${http_proxy:+http_proxy="$http_proxy"} \
  ${https_proxy:+https_proxy="$https_proxy"} ${no_proxy:+no_proxy="$no_proxy"} bash -c '"$@"' fresh "$@"
INSIDE
echo "== ${command[*]}, on a bare Debian 12"
unshare --mount --pid --fork --kill-child bash "$work/enter.sh" "$root" "${command[@]}"
echo "== fresh_machine.sh: passed"
