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

# step TITLE COMMAND...
step() {
    title "$1"
    launch "${@:2}"
    current_step=$launched
    await "$current_step" || fail "$1: failed, with exit code $?"
    current_step=
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
    local process label
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
}
