# SPDX-License-Identifier: BSD-3-Clause
# Shared by the scripts of this folder: . "$(dirname "$0")/common.sh"
# shellcheck shell=bash
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# A compilation is known again in another clone: paths are relative, and only the debugger's
# working folder differs.
export CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}

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

# is_of_llvm MAJOR TOOL: the tool has that major version. Another one judges by other rules, so its
# check is skipped, with a sentence.
is_of_llvm() {
    local version
    version=$("$2" --version | grep -oE 'version [0-9]+' | head -n 1)
    [ "${version#version }" = "$1" ] && return 0
    say "  $2 is ${version:-of an unknown version}, and this check needs version $1: skipped"
    return 1
}

# The C++ files of the project, one a line; also where there is no git.
our_sources() {
    git -C "$root" ls-files '*.h' '*.hpp' '*.cc' 2>/dev/null | grep . ||
        (cd "$root" &&
            find libulc pmd_app coll tests bench tools -name '*.h' -o -name '*.hpp' -o -name '*.cc')
}

# Seconds for a reader: 0:07, 1:02:03.
clock_of() {
    (($1 < 3600)) && printf '%d:%02d' $(($1 / 60)) $(($1 % 60)) ||
        printf '%d:%02d:%02d' $(($1 / 3600)) $(($1 / 60 % 60)) $(($1 % 60))
}

# progress_begin: what follows is counted from zero. progress DONE TOTAL [WHAT]: rewrites a line
# with a bar, percentage and time left; TOTAL 0: it is unknown. progress_end: removes the line.
# Without a terminal progress() writes nothing and returns 1: say it otherwise, but rarely.
# tools/shared/progress.py is the same for Python.
progress_is_shown='' progress_began=$SECONDS
[ -t 1 ] && [ "${TERM:-dumb}" != dumb ] && progress_is_shown=yes
progress_begin() { progress_began=$SECONDS; }
# time_left DONE TOTAL: ", 1:02 left" since progress_begin; nothing where that cannot be said.
time_left() {
    local took=$((SECONDS - progress_began))
    (($1 == 0 || $2 == 0 || took < 3)) ||
        printf ', %s left' "$(clock_of $((took * ($2 - $1) / $1)))"
}
progress() {
    [ -n "$progress_is_shown" ] || return 1
    local count=$1 total=$2 what=${3:-} took=$((SECONDS - progress_began)) bar text
    if ((total > 0)); then
        ((count > total)) && count=$total
        printf -v bar '%*s' $((count * 20 / total)) ''
        printf -v text '  [%-20s] %d/%d %d %%' "${bar// /#}" "$count" "$total" \
            $((count * 100 / total))
        text+=$(time_left "$count" "$total")
    else
        text="  [$(clock_of "$took")]"
    fi
    text+=" $what"
    printf '\r\033[K%s' "${text:0:79}"
}
progress_end() { [ -z "$progress_is_shown" ] || printf '\r\033[K'; }

# progress_of_line LINE: progress() of the last line of ninja ("[3/9] ...") or meson ("3/9 ...").
progress_of_line() {
    if [[ $1 =~ ^\ *\[?([0-9]+)/([0-9]+)\]?\ +(.*) ]]; then
        progress "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}"
    else
        progress 0 0 "$1"
    fi
}

# quietly LOG COMMAND...: the output goes to LOG; its last line is shown as progress, every 15
# seconds where there is no terminal; its end when the command fails.
quietly() {
    local log=$1 job status=0 shown=$SECONDS last
    shift
    mkdir -p "$(dirname "$log")"
    "$@" >"$log" 2>&1 </dev/null &
    job=$!
    progress_begin
    while kill -0 "$job" 2>/dev/null; do
        sleep 0.2
        last=$(tail -n 1 "$log" | tr '\t\r' ' ' | cut -c 1-100)
        if ! progress_of_line "$last" && ((SECONDS - shown >= 15)); then
            shown=$SECONDS
            [[ $last =~ ^\ *\[?([0-9]+)/([0-9]+) ]] &&
                last+=$(time_left "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}")
            printf '  [%s] %s\n' "$(elapsed)" "$last"
        fi
    done
    progress_end
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
