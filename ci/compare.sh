# What the comparisons of this folder share. Sourced after lib.sh, never run.
# shellcheck shell=bash

# On the host each finds its program by find_program, and hands it to the guest by this variable.
program=${HCABENCH_PROGRAM-}

# median: the middle of the numbers on standard input, one a line.
median() {
    sort -g | awk '{ n[NR] = $1 } END { print NR % 2 ? n[(NR + 1) / 2] : (n[NR / 2] + n[NR / 2 + 1]) / 2 }'
}

# cell FILE COLUMN: of the first row of a CSV file.
cell() {
    awk -F, -v "wanted=$2" 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i } NR == 2 { print $column[wanted] }' "$1"
}

# run_hcabench FOLDER MESSAGES ARGUMENT...: prints the median one-way latency in us, if all messages arrived; by other
# columns where counted_column and median_column name them; in so many bursts as repeat says, by default one. FOLDER is
# overwritten; what hcabench says goes to FOLDER.log.
run_hcabench() {
    local folder=$1 messages=$2 bursts=${repeat-1}
    timeout --kill-after=10 120 "$program" --burst "$((messages / bursts))" --repeat "$bursts" --poll busy --quiet \
        --force --out "$folder" "${@:3}" 2>"$folder.log" || return
    [[ $(cell "$folder/summary.csv" "${counted_column-messages_received}") == "$messages" ]] || return 0
    cell "$folder/summary.csv" "${median_column-latency_p50_ns}" | in_us
}

# in_us: a time in ns on standard input, in us.
in_us() { awk '{ print $1 / 1000 }'; }

# give_up PROGRAM LOG MESSAGES
give_up() {
    cat -- "$2" >&2
    fail "$1 failed, or did not deliver its $3 messages"
}

# take_turns ROUNDS FOLDER OTHER: runs the functions `ours` and `theirs`, each with FOLDER, ROUNDS times in turn. Each
# prints a number, of the unit that `unit` names, by default us. Prints them, and their medians, which it leaves in one
# and other.
take_turns() {
    local round side order unit=${unit-us}
    printf '%-8s %14s %14s\n' round "hcabench [$unit]" "$3 [$unit]"
    for ((round = 1; round <= $1; round++)); do
        # Neither is always the first of two.
        if ((round % 2)); then order=(ours theirs); else order=(theirs ours); fi
        for side in "${order[@]}"; do
            # Whoever calls this may have switched off that a failure ends it.
            "$side" "$2" >>"$2/all.$side" || exit 1
        done
        printf '%-8d %14.2f %14.2f\n' "$round" "$(tail -n 1 "$2/all.ours")" "$(tail -n 1 "$2/all.theirs")"
    done
    one=$(median <"$2/all.ours")
    other=$(median <"$2/all.theirs")
    printf '%-8s %14.2f %14.2f\n' median "$one" "$other"
}
