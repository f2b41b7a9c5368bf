# SPDX-License-Identifier: BSD-3-Clause
# Shared by the scripts of this folder: . "$(dirname "$0")/common.sh"
# shellcheck shell=bash
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# A compilation is known again in another clone: paths are relative, and only the debugger's
# working folder differs.
export CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}

# A step that runs in the background must not outlive the script, Ctrl-C included.
trap 'kill $(jobs -p) 2>/dev/null' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

elapsed() { printf '%d:%02d' $((SECONDS / 60)) $((SECONDS % 60)); }
say() { printf '%s\n' "$*"; }
stage() { printf '\n[%s] %s\n' "$(elapsed)" "$*"; }
warn() { printf 'warning: %s\n' "$*" >&2; }
die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# The C++ files of the project, one a line; also where there is no git.
our_sources() {
    git -C "$root" ls-files '*.h' '*.hpp' '*.cc' 2>/dev/null | grep . ||
        (cd "$root" &&
            find libulc pmd_app coll tests bench tools -name '*.h' -o -name '*.hpp' -o -name '*.cc')
}

# quietly LOG COMMAND...: the output goes to LOG; its last line is shown every 15 seconds, its end
# when the command fails.
quietly() {
    local log=$1 job status=0 shown=$SECONDS
    shift
    mkdir -p "$(dirname "$log")"
    "$@" >"$log" 2>&1 </dev/null &
    job=$!
    while kill -0 "$job" 2>/dev/null; do
        sleep 0.2
        if ((SECONDS - shown >= 15)); then
            shown=$SECONDS
            printf '  [%s] %s\n' "$(elapsed)" "$(tail -n 1 "$log" | cut -c 1-100)"
        fi
    done
    wait "$job" || status=$?
    if ((status != 0)); then
        # Compilers report the first cause early, a test its own anywhere; apt reports it last.
        { grep -m 1 -A 12 -E '(error:|^FAILED:|ERROR:)' "$log" ||
            grep -m 4 -A 6 -E '(: Failure$|runtime error:)' "$log" || true
            echo ...; tail -n 25 "$log"; } |
            cut -c 1-300 | sed 's/^/  | /'
        say "  that failed with status $status; the whole output: ${log#"$root"/}"
    fi
    return "$status"
}

# targets_where FOLDER FIELD: the files of a build's targets whose FIELD (installed,
# build_by_default) is true.
targets_where() {
    meson introspect --targets "$1" | python3 -c '
import json, os, sys
for target in json.load(sys.stdin):
    if target[sys.argv[2]]:
        print(os.path.relpath(target["filename"][0], os.path.realpath(sys.argv[1])))' "$1" "$2"
}
