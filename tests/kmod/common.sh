# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by the scripts of this folder: where kernels are kept, and how they get there.
#
# A kernel is a folder of the cache, $kernels/<release>, with
#   vmlinux   the ELF file QEMU starts
#   headers   what modules are built against: make -C headers M=...
#   modules   its own modules (Debian's kernels only)
# and, once all that is complete, .complete.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
kernels=${ZC_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/zc}/kernels

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }
say() { echo "$(basename "$0"): $*" >&2; }
die() { say "$*"; exit 1; }

# The version apt would take; nothing if it has none.
candidate() { # package
    apt-cache policy "$1" 2>/dev/null | awk '$1 == "Candidate:" && $2 != "(none)" { print $2 }'
}

# Unpacked, not installed: the machine stays as it is, needs no root, and
# several versions may lie side by side.
fetch_packages() { # folder package...
    local into=$1 debs
    shift
    debs=$(mktemp -d "$kernels/download-XXXXXX")
    (cd "$debs" && apt-get -qq download "$@" > log 2>&1) ||
        { cat "$debs/log" >&2; rm -rf "$debs"; return 1; }
    mkdir -p "$into"
    local deb
    for deb in "$debs"/*.deb; do
        dpkg -x "$deb" "$into" || return 1
    done
    rm -rf "$debs"
}
