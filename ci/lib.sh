# What the scripts of this folder share. Sourced, never run.
# shellcheck shell=bash

name=ci/$(basename -- "$0")
# shellcheck disable=SC2034 # used by those who source this
repository=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)

# Prints the comment block at the head of the script that was run: it is the usage text.
usage() {
    sed -n '2,/^[^#]/{/^#/!q; s/^# \{0,1\}//; p}' "$0"
}

say() { printf '%s: %s\n' "$name" "$*" >&2; }

fail() {
    say "$*"
    exit 1
}

usage_error() {
    say "$* (see $name --help)"
    exit 2
}

# whole_number OPTION VALUE MIN MAX
whole_number() {
    if ! [[ $2 =~ ^(0|[1-9][0-9]{0,8})$ ]] || (($2 < $3 || $2 > $4)); then
        usage_error "$1: '$2' is not allowed, must be a whole number from $3 to $4"
    fi
}

# read_options ARGUMENT...: sets a variable for each option, for_ever for --for-ever, and rest to what is behind --. The
# table options says what is allowed: MIN and MAX of a whole number; =PATTERN|WHAT; flag; list, which may be there
# again, and is an array; or nothing for any text. Its key words is how many words that are no option there may be,
# which are in rest as well. Prints the usage text if that is asked for.
read_options() {
    local option allowed
    rest=()
    while (($#)); do
        case $1 in
        -h | --help)
            usage
            exit
            ;;
        --)
            rest=("${@:2}")
            return
            ;;
        --*=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
        esac
        if [[ $1 != -* ]] && ((${#rest[@]} < ${options[words]:-0})); then
            rest+=("$1")
            shift
            continue
        fi
        option=${1#--}
        [[ $1 == --[a-z]* && $1 != --words && -v options[$option] ]] || usage_error "unexpected argument '$1'"
        allowed=${options[$option]}
        if [[ $allowed == flag ]]; then
            printf -v "${option//-/_}" 1
            shift
            continue
        fi
        (($# >= 2)) || usage_error "$1: a value is missing"
        # shellcheck disable=SC2086 # two words
        case $allowed in
        '') ;;
        list)
            local -n all_of_it=${option//-/_}
            all_of_it+=("$2")
            ;;
        =*)
            allowed=${allowed#=}
            [[ $2 =~ ${allowed%|*} ]] || usage_error "$1: '$2' is not allowed, must be ${allowed##*|}"
            ;;
        *) whole_number "$1" "$2" $allowed ;;
        esac
        [[ $allowed == list ]] || printf -v "${option//-/_}" %s "$2"
        shift 2
    done
}

# Sets as_root to what stands before a command to run it as root; exit code 1 where there is no way. It may ask for a
# password, on a terminal only.
# shellcheck disable=SC2034 # used by those who source this
find_root() {
    as_root=()
    ((EUID == 0)) && return
    command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 && -t 2 ]]; } || return 1
    as_root=(sudo)
    # Behind a step, where there is no terminal, sudo would wait for a password that nobody can type.
    [[ -t 0 ]] || as_root=(sudo -n)
}

# Whether a virtual machine can use KVM. /dev/kvm may be there, and even open, on a processor that cannot do it: the
# guest then hangs.
has_kvm() {
    { [[ $(uname -m) == aarch64 ]] || grep -qE '^flags.* (vmx|svm)( |$)' /proc/cpuinfo; } &&
        [[ -r /dev/kvm && -w /dev/kvm ]]
}

# Sets cargo to the cargo of this machine: rustup puts it where not every PATH leads.
find_cargo() {
    cargo=$(type -P cargo) || cargo=${CARGO_HOME:-$HOME/.cargo}/bin/cargo
    [[ -x $cargo ]] || fail "there is no cargo, neither on PATH nor as $cargo: install Rust with rustup"
    # It starts rustc and others of its kind by name.
    PATH=$(dirname -- "$cargo"):$PATH
}

# Lets cargo build for aarch64 on a machine of another architecture, and sets root to the folder with its libraries.
# shellcheck disable=SC2034 # used by those who source this
cross_for_aarch64() {
    local image
    image=$("$repository/ci/vm-fetch" --arch aarch64) || exit
    root=$(dirname -- "$image")/root
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
    export PKG_CONFIG_ALLOW_CROSS=1 PKG_CONFIG_SYSROOT_DIR=$root
    export PKG_CONFIG_LIBDIR=$root/usr/lib/aarch64-linux-gnu/pkgconfig
    # For bindgen, of ci/check-bindings.
    export BINDGEN_EXTRA_CLANG_ARGS_aarch64_unknown_linux_gnu="-I$root/usr/include -I/usr/aarch64-linux-gnu/include"
}

# build_program [OPTION]...: sets program to the one that the variable HCABENCH_PROGRAM names, else to a release build
# made now, by cargo with these options, and exports that variable.
build_program() {
    local target=${CARGO_TARGET_DIR:-$repository/target} quiet=(--quiet) before began=$SECONDS
    program=${HCABENCH_PROGRAM-}
    if [[ -n $program ]]; then
        [[ -f $program && -x $program ]] || usage_error "HCABENCH_PROGRAM: '$program' is no program that can be run"
    else
        find_cargo
        program=$target/release/hcabench
        # Cargo draws its progress on a terminal.
        [[ ! -t 2 ]] || quiet=()
        before=$(stat -c %Y -- "$program" 2>/dev/null) ||
            say "building hcabench, which takes some minutes the first time"
        "$cargo" build "${quiet[@]}" --release --locked --bin hcabench --manifest-path "$repository/Cargo.toml" \
            --target-dir "$target" "$@" || fail "hcabench could not be built"
        [[ $before == "$(stat -c %Y -- "$program")" ]] ||
            say "built hcabench in $(((SECONDS - began) / 60)) min $(((SECONDS - began) % 60)) s"
    fi
    program=$(realpath -- "$program")
    export HCABENCH_PROGRAM=$program
}

# The same, and says which it is.
find_program() {
    build_program "$@"
    say "the program is $program"
}

# built MESSAGES KIND NAME: the program of that kind and name that cargo has built, of a file of its messages in JSON.
built() {
    local path
    path=$(sed -n 's/.*"kind":\["'"$2"'"\],"crate_types":\[[^]]*\],"name":"'"$3"'".*"executable":"\([^"]*\)".*/\1/p' \
        "$1")
    [[ -x $path ]] || fail "cargo named no program $3 ($2): '$path'"
    printf '%s\n' "$path"
}

# What stands before a program to run it, and the lines that end the runs of tests well.
emulated=() good_ends=()

# has_tests PROGRAM [FILTER...]: prints how many tests its runner takes by these filters; exit code 1 where that is
# none.
has_tests() { "${emulated[@]}" "$@" --list | grep -c ': test$'; }

# expect PROGRAM [FILTER...]: adds to good_ends the line that ends a run of these tests well.
expect() {
    local all count
    all=$(has_tests "$1") || fail "$1 has no test"
    count=$(has_tests "$@") || fail "$1 has no test for ${*:2}"
    good_ends+=("test result: ok. $count passed; 0 failed; 0 ignored; 0 measured; $((all - count)) filtered out")
}

# ended_well LOG: whether these are, in order, all the results in there, and prints them. Neither silence nor an
# ignored test passes.
ended_well() {
    local results
    results=$(grep '^test result: ' "$1" | sed 's/; finished in .*//') || true
    [[ $results == "$(printf '%s\n' "${good_ends[@]}")" ]] ||
        fail "it ended well, but with other results than: $(printf '%s; ' "${good_ends[@]}")"
    printf '\n%s\n' "${good_ends[@]}"
}

# tests_in_machine ARGUMENT...: runs tests by ci/vm with these arguments, with their output in the file $log as well.
tests_in_machine() {
    # At a signal the machine ends in order, and still writes.
    # shellcheck disable=SC2154 # set by who calls
    "$repository/ci/vm" "$@" 2>&1 | (trap '' INT TERM HUP && exec tee -- "$log") ||
        fail "the tests in the SoftRoCE machine failed, or did not run to their end"
    ended_well "$log"
}

# write_sums FOLDER: writes the sums of the files in that folder to SHA256SUMS there.
write_sums() {
    local sums
    sums=$(cd -- "$1" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\0' | LC_ALL=C sort -z |
        xargs -0 sha256sum --) || fail "the sums of the files in $1 could not be computed"
    printf '%s\n' "$sums" >"$1/SHA256SUMS"
}

# take_lock FILE WHAT: as descriptor 8, until this script ends; waits for another one of the same kind.
take_lock() {
    exec 8>"$1"
    flock -n 8 && return
    say "waiting for another $2"
    flock -w 900 8 || fail "another $2 has not ended within 15 minutes"
}

# is_complete FOLDER STAMP: whether that folder carries this stamp, which is written last, as the file complete, and
# holds all that its content depends on.
is_complete() { [[ -e $1/complete && $(<"$1/complete") == "$2" ]]; }

# python_environment FOLDER REQUIREMENTS: makes a Python environment there, with the packages of that file at its
# versions and hashes, if it is not there. One works only where it was made and with the Python that made it.
python_environment() {
    local python=$1 requirements=$2 stamp
    stamp="$python $(/usr/bin/python3 --version) $(sha256sum <"$requirements")"
    ! is_complete "$python" "$stamp" || return 0
    say "installing Python's packages"
    rm -rf -- "$python"
    /usr/bin/python3 -m venv "$python" || fail "python3 could not make an environment in $python"
    "$python/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
        -r "$requirements" || fail "pip could not install $requirements"
    printf '%s\n' "$stamp" >"$python/complete"
}

# logged WHAT COMMAND...: runs it, without the lock, with its output behind that in the file $log; shows the end of that
# only when it fails.
logged() {
    local what=$1
    shift
    # shellcheck disable=SC2154 # set by who calls
    "$@" >>"$log" 2>&1 </dev/null 8>&- && return
    tail -n 30 -- "$log" >&2
    fail "could not $what (whole output: $log)"
}
