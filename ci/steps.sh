# Steps of a run: one after another, or beside those that follow. Sourced behind ci/lib.sh, never run.
#
# The first that fails ends the script and all that still runs, with exit code 1; what runs beside the steps is looked
# at where its result is needed.
# shellcheck shell=bash

declare -A running=() # process groups of steps that have not ended well
declare -A beside=()  # process and title of what runs beside the steps, by name
step_logs=$(mktemp -d)

# title TEXT: with the time since the script began, in minutes and seconds.
title() { printf '\n== %s   [%d:%02d]\n' "$*" $((SECONDS / 60)) $((SECONDS % 60)); }

# launch COMMAND...: in a process group of its own, so that it can be ended with all it started; sets launched.
launch() {
    set -m
    "$@" </dev/null &
    launched=$!
    set +m
    running[$launched]=1
}

# await PROCESS: until it has ended, with its exit code. What failed may have left others of its group.
await() { wait "$1" && unset "running[$1]"; }

end_steps() {
    local process tries
    trap '' INT TERM HUP
    for process in "${!running[@]}"; do
        kill -TERM -- "-$process" 2>/dev/null || true
    done
    # The first of a group may be gone before the others: ci/vm gives its command 10 s.
    for process in "${!running[@]}"; do
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

# took SECONDS TITLE: for the table of steps.
took() { printf '%s\t%s\n' "$1" "$2" >>"$step_logs/took"; }

# print_times: how long each step took, and all of it.
print_times() {
    title "minutes by step"
    printf 'all\t%s\n' "$SECONDS" | cat -- "$step_logs/took" - |
        awk -F'\t' '$1 == "all" { $1 = $2; $2 = "all, since it began" }
            { printf "%4d:%02d  %s\n", $1 / 60, $1 % 60, $2 }'
}

# step TITLE COMMAND...
step() {
    local began=$SECONDS
    title "$1"
    launch "${@:2}"
    await "$launched" || fail "$1: failed, with exit code $?"
    took $((SECONDS - began)) "$1"
}

# What the compiler and the tools read of the environment, and what only says where they get their files from.
read_by_tools='^(HCABENCH_|RUST|CARGO_|CC|CXX|CPP|CFLAGS|CPATH|C_INCLUDE|AR|AS|LD|LIBRARY_PATH|HOST_|TARGET_|PKG_CONFIG'
read_by_tools+='|BINDGEN|LIBCLANG|CLANG|LLVM|CMAKE|MAKE|PYTHONPATH|PYTHONHOME|QEMU|RDMAV|IBV_|MLX|GLIBC|MALLOC|TZ)'
only_where='^(HCABENCH_TEST_|RUSTUP_|CARGO_(HOME|NET|HTTP|REGISTR|SOURCE|TERM|TARGET_DIR))'
# What each step depends on beside files of the repository: Rust, the packages of ci/setup with all that they depend
# on (ci/test has PATH lead to these and the base system only), the environment, the processor, and what the SoftRoCE
# machines boot with. Not the kernel of this machine: what tests it runs each time. Exit code 1 where any of it cannot be read.
machine_state() {
    local file files folder packages
    rustc -vV && cargo -V && uname -sm && nproc && cat /etc/os-release || return 1
    grep -m 1 '^model name' /proc/cpuinfo || uname -p
    if has_kvm; then echo kvm; fi
    packages=$(ci/setup --list run vm siw test package notebooks readers rdma-cm aarch64 bindings) || return 1
    # shellcheck disable=SC2086 # one word each
    packages=$(apt-cache depends --recurse --installed --no-recommends --no-suggests --no-conflicts --no-breaks \
        --no-replaces --no-enhances libc6 $packages) || return 1
    dpkg-query -W -f '${Package} ${Priority} ${Version} ${Architecture} ${db:Status-Abbrev}\n' \
        >"$step_logs/installed" || return 1
    grep '^[a-z0-9]' <<<"$packages" | sed 's/:.*//' | awk '
        NR == FNR { wanted[$1]; next } $1 in wanted || $2 == "required" || $2 == "important"' \
        - "$step_logs/installed" | LC_ALL=C sort || return 1
    env | { grep -E "$read_by_tools" || true; } | { grep -vE "$only_where" || true; } | LC_ALL=C sort
    # Of cargo's configuration all but where packages come from: Cargo.lock has the sum of each.
    files=("${CARGO_HOME:-$HOME/.cargo}"/config{,.toml})
    folder=$PWD
    while [[ $folder ]]; do
        files+=("$folder"/.cargo/config{,.toml})
        folder=${folder%/*}
    done
    for file in "${files[@]}" /.cargo/config{,.toml}; do
        [[ -e $file ]] || continue
        awk '/^[ \t]*\[/ { skip = /^[ \t]*\[[ \t]*(source|registr|net|http|term)/ } !skip' "$file" || return 1
    done
    (cd target/vm && sha256sum kernel-6.1/boot/vmlinuz-* kernel-6.12/boot/vmlinuz-* aarch64/vmlinuz \
        aarch64/root/var/lib/dpkg/status && LC_ALL=C ls -d python/lib/python*/site-packages/*.dist-info) || return 1
}

# inputs_of PATH...: one word that changes with any of these files, tracked or new, by name, content and whether it can
# be run, with all of ci and what all is built by, and with the machine's state at the first call. Exit code 1 where a
# path is not there or a file cannot be read.
inputs_of() {
    local path
    for path; do [[ -e $path ]] || return 1; done
    [[ -e $step_logs/machine ]] || machine_state >"$step_logs/machine.new" || return 1
    [[ -e $step_logs/machine ]] || mv -- "$step_logs/machine.new" "$step_logs/machine" || return 1
    git ls-files -z --cached --others --exclude-standard -- "$@" Cargo.toml Cargo.lock build.rs benches ci .cargo \
        .clippy.toml clippy.toml .rustfmt.toml rustfmt.toml rust-toolchain rust-toolchain.toml \
        ":(exclude)$passed" ":(exclude)$whole_runs" | LC_ALL=C sort -zu >"$step_logs/names" || return 1
    {
        cat -- "$step_logs/machine" && xargs -0 sha256sum -- <"$step_logs/names" || return 1
        # shellcheck disable=SC2016 # expanded there
        xargs -0 sh -c 'for file; do [ ! -x "$file" ] || echo "runs $file"; done' sh <"$step_logs/names" || return 1
    } >"$step_logs/inputs" || return 1
    sha256sum <"$step_logs/inputs" | cut -d ' ' -f 1
}

# One line per step: the hash of all inputs that it last passed with, the date, and its seconds. Committed: the same
# inputs have the same hash on any machine.
passed=ci/passed
# One line per ci/test --whole that passed: the date, the commit and the minutes; "continued" where steps had passed in
# a run before that was stopped.
whole_runs=docs/whole.txt

# write_passed PATTERN [LINE]: without the lines that match, and with that one.
write_passed() {
    { [[ ! -e $passed ]] || PATTERN=$1 awk '$0 !~ ENVIRON["PATTERN"]' "$passed"; } >"$step_logs/passed" &&
        { [[ -z ${2-} ]] || printf '%s\n' "$2" >>"$step_logs/passed"; } &&
        LC_ALL=C sort -k 5 -o "$passed" "$step_logs/passed"
}

# inputs_of_step TITLE PATH... -- COMMAND...: sets inputs to one word that changes with the inputs, the title and the
# command, empty where they cannot be read, and command to the command.
inputs_of_step() {
    local label=$1 depends=()
    shift
    while [[ $1 != -- ]]; do depends+=("$1") && shift; done
    command=("${@:2}")
    inputs=$(inputs_of "${depends[@]}") || inputs=''
    [[ -z $inputs ]] || inputs=$(printf '%s\n' "$inputs" "$label" "${command[@]}" | sha256sum | cut -d ' ' -f 1)
}

# unless_passed TITLE PATH... -- COMMAND...: a step, unless it has passed with the same inputs and command. The caller
# has set tree to inputs_of . before anything was built: what changed since was not tested. Where the inputs cannot be
# determined, or the record cannot be read or written, it runs. HCABENCH_TEST_ALL=1 runs all. With passed_since, a date,
# a record counts from that day on.
unless_passed() {
    local label=$1 inputs command began=$SECONDS before
    inputs_of_step "$@"
    if [[ -z $inputs ]]; then
        step "$label" "${command[@]}"
        say "'$label' is not recorded as passed, because its inputs could not be read: it runs again next time"
        return
    fi
    before=$(grep -m 1 "^$inputs " "$passed" 2>/dev/null) || before=''
    read -r _ before _ <<<"$before"
    if [[ -z ${HCABENCH_TEST_ALL-} && $before && ! $before < ${passed_since-} ]]; then
        title "$label: passed on $before with the same inputs"
        took 0 "$label (passed before with the same inputs)"
        return
    fi
    # If it fails now, what it passed with before is no record.
    ! grep -q "^$inputs " "$passed" 2>/dev/null || write_passed "^$inputs " || fail "$passed cannot be written"
    step "$label" "${command[@]}"
    record_passed "$label" "$inputs" $((SECONDS - began))
}

# forget_passed TITLE: before a step that has this one as a part, and may fail in it.
forget_passed() { write_passed "$(line_of "$1")" || fail "$passed cannot be written"; }

# line_of TITLE: the pattern of its line in $passed.
line_of() {
    # shellcheck disable=SC2001 # a class of characters
    printf '^[^ ]+ [^ ]+ +[0-9]+ s  %s$' "$(sed 's/[][\\.*^$+?(){}|]/\\&/g' <<<"$1")"
}

# part_passed TITLE PATH... -- COMMAND...: records that a step has passed all of which the step before has run.
part_passed() {
    local inputs command
    inputs_of_step "$@"
    [[ -z $inputs ]] || record_passed "$1" "$inputs" 0
}

# record_passed TITLE INPUTS SECONDS
record_passed() {
    if [[ -z ${tree-} || $(inputs_of .) != "$tree" ]]; then
        say "'$1' is not recorded as passed, because files changed during the run: it runs again next time"
        return
    fi
    write_passed "$(line_of "$1")" "$2 $(date -u +%F) $(printf '%4d' "$3") s  $1" ||
        say "that '$1' passed could not be recorded: it runs again next time"
}

# The state of the repository that a run of all can be recorded for; nothing where it is not that of a commit.
commit_of_tree() {
    local changed
    changed=$(git status --porcelain -- . ":(exclude)$passed" ":(exclude)$whole_runs") || return 1
    [[ $changed ]] || git rev-parse HEAD
}

# record_whole COMMIT: that ci/test --whole passed, which began at that commit.
record_whole() {
    if [[ -z $1 || $(commit_of_tree) != "$1" ]]; then
        say "this run of all is not recorded in $whole_runs, because the tree is not that of a commit"
        return
    fi
    printf '%s %s %d min%s\n' "$(date -u +%F)" "$1" $((SECONDS / 60)) "${passed_since:+, continued}" >>"$whole_runs"
}

# check_whole: fails where the last ci/test --whole that passed is older than 7 days or 30 commits, counted to the last
# commit along first parents (a merged branch is one): what has been released stays as it was tested.
check_whole() {
    local date commit days count now
    read -r date commit _ <<<"$(tail -n 1 -- "$whole_runs" 2>/dev/null)"
    [[ ${commit-} =~ ^[0-9a-f]{40}$ ]] ||
        fail "$whole_runs has no ci/test --whole that passed: run one and commit that file"
    date=$(date -u -d "$date" +%s) || fail "$whole_runs: no date in its last line"
    now=$(git log -1 --format=%ct) || fail "git has no commit here"
    days=$(((now - date) / 86400))
    if git merge-base --is-ancestor "$commit" HEAD 2>/dev/null; then
        count=$(git rev-list --count --first-parent "$commit..HEAD")
    elif [[ $(git rev-parse --is-shallow-repository) == true ]]; then
        say "a shallow clone cannot count commits: only the date of the last ci/test --whole is checked"
        count=0
    else
        fail "$whole_runs: this branch does not have the commit $commit"
    fi
    ((days >= -1 && days <= 7 && count <= 30)) ||
        fail "the last ci/test --whole that passed is $days days and $count commits old, allowed: 7 days and 30" \
            "commits. Run one, and commit $whole_runs"
    printf 'the last ci/test --whole that passed: %d days and %d commits ago\n' "$days" "$count"
}

# beside NAME TITLE COMMAND...: runs it beside the steps that follow, up to finish NAME.
beside() {
    launch "${@:3}" >"$step_logs/$1" 2>&1
    beside[$1]="$launched $2"
}

# finish NAME: waits for it, and shows what it wrote.
finish() {
    local process label began=$SECONDS code=0
    read -r process label <<<"${beside[$1]}"
    await "$process" || code=$?
    title "$label"
    cat -- "$step_logs/$1"
    ((code == 0)) || fail "$label: failed, with exit code $code"
    took $((SECONDS - began)) "$label (waited for; it ran beside others)"
}
