# Steps of a run: one after another, or beside those that follow. Sourced behind ci/lib.sh, never run.
#
# The first that fails ends the script and all that still runs, with exit code 1.
# shellcheck shell=bash

declare -A beside_titles=() beside_logs=() # by process, of those that have not ended well
step_logs=$(mktemp -d)

# title TEXT: with the time since the script began, in minutes and seconds.
title() { printf '\n== %s   [%d:%02d]\n' "$*" $((SECONDS / 60)) $((SECONDS % 60)); }

# launch COMMAND...: in a process group of its own, so that it can be ended with all it started; sets launched.
launch() {
    set -m
    "$@" </dev/null &
    launched=$!
    set +m
}

end_steps() {
    local process tries
    trap '' INT TERM HUP
    for process in "${!beside_titles[@]}" ${current_step:-}; do
        kill -TERM -- "-$process" 2>/dev/null || true
    done
    # The first of a group may be gone before the others: ci/vm gives its command 10 s.
    for process in "${!beside_titles[@]}" ${current_step:-}; do
        for ((tries = 0; tries < 200; tries++)); do
            kill -0 -- "-$process" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL -- "-$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    done
    rm -rf -- "$step_logs"
}
trap end_steps EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# wait_for_one PROCESS...: until one of them has ended; sets ended and code.
wait_for_one() {
    local process
    # The dead first: wait -n passes over those whose end bash has told already, as it does of most signals. wait knows
    # them.
    for process; do
        kill -0 "$process" 2>/dev/null && continue
        ended=$process code=0
        wait "$process" || code=$?
        return 0
    done
    code=0
    wait -n -p ended "$@" || code=$?
    if [[ -z ${ended-} ]]; then # all of them have ended, and bash has told it
        ended=$1 code=0
        wait "$1" || code=$?
    fi
}

# await PROCESS: until it has ended, with its exit code. What fails beside it meanwhile ends the script.
await() {
    local label log
    while :; do
        wait_for_one "$1" "${!beside_titles[@]}"
        label=${beside_titles[$ended]-} log=${beside_logs[$ended]-}
        # What failed stays among them: it may have left others of its group.
        ((code != 0)) || unset "beside_titles[$ended]" "beside_logs[$ended]"
        if [[ $ended == "$1" ]]; then
            return "$code"
        fi
        if ((code != 0)); then
            title "$label (beside the step above)"
            cat -- "$log" >&2
            fail "$label: failed, with exit code $code"
        fi
    done
}

# took SECONDS TITLE: for the table of steps.
took() { printf '%s\t%s\n' "$1" "$2" >>"$step_logs/took"; }

# print_times: how long each step took, and all of it.
print_times() {
    title "minutes by step"
    printf 'all\t%s\n' "$SECONDS" | cat -- "$step_logs/took" - |
        awk -F'\t' '$1 == "all" { $1 = $2; $2 = "all, since it began" } { printf "%4d:%02d  %s\n", $1 / 60, $1 % 60, $2 }'
}

# step TITLE COMMAND...
step() {
    local began=$SECONDS
    title "$1"
    launch "${@:2}"
    current_step=$launched
    await "$current_step" || fail "$1: failed, with exit code $?"
    current_step=
    took $((SECONDS - began)) "$1"
}

# What a step that runs when its inputs have changed depends on beside files: the tools of this machine. Of its packages
# those that ci/setup installs for the groups named as @GROUP, and the C library.
machine_state() {
    local file groups=() packages
    for file; do [[ $file != @* ]] || groups+=("${file#@}"); done
    rustc -vV && cargo -V && uname -sm && nproc && cat /etc/os-release || return 1
    packages=$(ci/setup --list run "${groups[@]}") || return 1
    # shellcheck disable=SC2086 # one word each
    dpkg-query -W -f '${Package} ${Version} ${Status}\n' libc6 $packages || return 1
    env | { grep -E '^(RUSTFLAGS|RUSTDOCFLAGS|CARGO_)' || true; } | sort
    for file in "${CARGO_HOME:-$HOME/.cargo}"/config{,.toml}; do
        if [[ -e $file ]]; then cat -- "$file" || return 1; fi
    done
    [[ " ${groups[*]} " == *" vm "* ]] || return 0
    if [[ -e /dev/kvm ]]; then echo kvm; fi
    # The kernels of the SoftRoCE machine, which dpkg of this one does not know.
    find target/vm -path '*/boot/vmlinuz*' -printf '%P\n' | sort
}

# inputs_of PATH|@GROUP...: one word that changes with any of these files, tracked or new, by name and content, with
# what all tests are run by, and with the tools. Exit code 1 where a path is not there or a file cannot be read.
inputs_of() {
    local path paths=()
    for path; do
        [[ $path != @* ]] || continue
        [[ -e $path ]] || return 1
        paths+=("$path")
    done
    {
        machine_state "$@" || return 1
        git ls-files -z --cached --others --exclude-standard -- "${paths[@]}" Cargo.toml Cargo.lock build.rs ci/test \
            ci/steps.sh ci/lib.sh ci/setup ":(exclude)$passed" | sort -zu | xargs -0 sha256sum || return 1
    } >"$step_logs/inputs" || return 1
    sha256sum <"$step_logs/inputs" | cut -d ' ' -f 1
}

# A line a step that runs when its inputs have changed: the hash of all inputs it last passed with, the day, and its
# seconds. Committed: the same inputs have the same hash on any machine.
passed=ci/passed

# unless_passed TITLE PATH|@GROUP... -- COMMAND...: a step, unless it has passed with the same inputs and command.
# Whoever calls it has set tree to inputs_of . before anything was built: what changed since was not tested. Where the
# inputs cannot be told, or the record cannot be read or written, it runs. HCABENCH_TEST_ALL=1 runs all.
unless_passed() {
    local label=$1 inputs='' depends=() began=$SECONDS before
    shift
    while [[ $1 != -- ]]; do depends+=("$1") && shift; done
    shift
    inputs=$(inputs_of "${depends[@]}") || inputs=
    [[ -z $inputs ]] || inputs=$(printf '%s\n' "$inputs" "$label" "$@" | sha256sum | cut -d ' ' -f 1)
    if [[ $inputs && -z ${HCABENCH_TEST_ALL-} ]] && before=$(grep -m 1 "^$inputs " "$passed" 2>/dev/null); then
        read -r _ before _ <<<"$before"
        title "$label: passed on $before with the same inputs"
        took 0 "$label (passed before with the same inputs)"
        return
    fi
    step "$label" "$@"
    [[ $inputs ]] || return 0
    [[ ${tree-} && $(inputs_of .) == "$tree" ]] || return 0
    {
        { label=$label awk '{ line = $0; sub(/^[^ ]+ [^ ]+ +[0-9]+ s  /, "") } $0 != ENVIRON["label"] { print line }' \
            "$passed" 2>/dev/null || true; } >"$step_logs/passed" &&
            printf '%s %s %4d s  %s\n' "$inputs" "$(date -u +%F)" $((SECONDS - began)) "$label" >>"$step_logs/passed" &&
            sort -k 5 -o "$passed" "$step_logs/passed"
    } || say "that '$label' passed could not be recorded: it runs again next time"
}

# beside NAME TITLE COMMAND...: runs it beside the steps that follow, up to finish NAME.
beside() {
    launch "${@:3}" >"$step_logs/$1" 2>&1
    beside_titles[$launched]=$2
    beside_logs[$launched]=$step_logs/$1
    printf '%s\n' "$launched" "$2" >"$step_logs/$1.step"
}

# finish NAME: waits for it, and shows what it wrote.
finish() {
    local process label began=$SECONDS
    { read -r process && read -r label; } <"$step_logs/$1.step"
    if [[ -n ${beside_titles[$process]-} ]]; then
        await "$process" || {
            title "$label"
            cat -- "$step_logs/$1" >&2
            fail "$label: failed, with exit code $code"
        }
    fi
    title "$label"
    cat -- "$step_logs/$1"
    took $((SECONDS - began)) "$label (waited for; it ran beside others)"
}
