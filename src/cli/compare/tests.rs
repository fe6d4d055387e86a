use super::*;
use crate::cli::refused::parse_words;
use crate::compare::figures::Which;
use crate::results::finding::Finding;
use crate::testing::{Has as _, Refused as _};

fn parse(text: &str) -> Result<CompareArguments, String> {
    parse_words(shlex::split(text).unwrap()).map_err(|error| error.to_string())
}

#[test]
fn percentiles_are_those_asked_for_and_those_with_limits() {
    let limits = "5%@p99.9,10%@latency.p50,0.1%@lost,1%@completion.p99.99";
    let request = parse(&format!("a b --max-regression {limits}"))
        .unwrap()
        .request();
    // A limit with a scope brings its figure alone, and not those of all scopes.
    assert_eq!(request.percentiles, [50.0, 99.0, 99.9]);
    let limit = |percent, scope: Option<&str>, kind| Limit {
        percent,
        of: Which {
            scope: scope.map(str::to_owned),
            kind,
        },
    };
    let expected = [
        limit(5.0, None, Kind::Percentile(99.9)),
        limit(10.0, Some("latency"), Kind::Percentile(50.0)),
        limit(0.1, None, Kind::Lost),
        limit(1.0, Some("completion"), Kind::Percentile(99.99)),
    ];
    assert_eq!(request.limits, expected);
    let request = parse("a b --percentiles p90").unwrap().request();
    assert_eq!(request.percentiles, [90.0]);
}

#[test]
fn what_may_differ() {
    let permitted = |text| parse(text).unwrap().request().permitted;
    assert_eq!(permitted("a b"), Permitted::Named(Vec::new()));
    assert_eq!(
        permitted("a b --allow receiver-pause,hugepages"),
        Permitted::Named(vec!["receiver_pause".to_owned(), "hugepages".to_owned()])
    );
    assert_eq!(permitted("a b --allow pause --anyway"), Permitted::All);
    let runs = permitted("--run '--size 8' --run '--size 16' --rounds 8");
    assert_eq!(runs, Permitted::Settings);
}

#[test]
fn two_command_lines_are_taken_word_by_word() {
    let line =
        parse("--run 'queue --queue \"a b\"' --run '--poll event' --rounds 8 --out both").unwrap();
    assert_eq!(line.run[0].0, ["queue", "--queue", "a b"]);
    assert_eq!(line.run[1].0, ["--poll", "event"]);
    let one = parse("--run '--size 8' --rounds 8").unwrap();
    run(&one).refused(&["give two of them, not 1"]);
    let alone = parse("a").unwrap();
    run(&alone).refused(&["a is the only results folder", "--by SETTING"]);
}

fn sample() -> Run {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("notebooks/sample/hca");
    rounds::open(&path).unwrap()
}

#[test]
fn columns_are_headed_by_the_values_and_what_follows_another_setting_is_none() {
    let run = sample();
    let text = |by: &str| {
        let request = parse("a").unwrap().request();
        let comparison = compare_within(&run, by, &request).unwrap();
        let shown = Shown::of(&comparison);
        let answer = shown.answer(&|rounds| format!("Record {rounds}."));
        shown.text(&answer, &[], None, false, None)
    };
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let service = text("service");
    words(&service).has(&[
        "With 1 round no difference between rc and the others can be judged",
        "it takes 8 rounds. Record 8.",
        "uc against rc: size burst inline figure rc uc difference",
        "ud against rc: size burst inline figure rc ud difference",
        "settings: warmup follows burst",
        "8 B 32 off lost 0 % 3.12 % +3.12 % points",
        "in percent of rc; of shares in % points",
    ]);
    service.lacks(&["BASE", "NEW", "interval", "verdict", "not judged"]);
    words(&text("burst")).has(&[
        "service size inline figure burst 32 burst 192 difference",
        "settings: warmup follows from burst",
    ]);
    words(&text("inline")).has(&["figure inline off inline on difference"]);
}

#[test]
fn each_run_has_its_verdict_and_the_reason_for_what_is_left_out() {
    let run = sample();
    let names = ["base", "new"].map(str::to_owned);
    let mut broken = Findings::default();
    let finding = Finding::of(&INCOMPLETE).name("reason", "killed");
    broken.add(finding, None, None);
    let usable = Findings::default();
    let both = [usable.clone(), broken];
    assert_eq!(
        verdicts(&both, &[&run, &run], &names),
        [
            "verdict on base: usable",
            "verdict on new: incomplete; usable",
            "- new: the run was not measured to its end: killed",
        ]
    );
    let alike = [usable.clone(), usable];
    assert_eq!(verdicts(&alike, &[&run, &run], &names), ["verdict: usable"]);
}

/// A command line, and what must stand in the error.
const BAD: &str = r#"
--by poll_recv                                     | <BASE>
a b --by poll_recv                                 | --by | [NEW]
a --by poll_recv --allow size                      | --by | --allow
a b --run '--size 8'                               | --run
--run '--size 8' --run '--size 16'                 | --rounds
--run '--size 8' --run '--out x' --rounds 2        | --run | --out | no place here
--run '--size 8' --run '--rounds=3' --rounds 2     | --rounds | no place here
--run 'plot x' --run '--size 8' --rounds 2         | "plot" | clock or queue
--run "--size '8" --run '' --rounds 2              | --run | quote
--run '--size 8' --run '--size 16' --rounds 0      | --rounds | 0
a b --max-regression 5                             | --max-regression | "5" | 5%@p50
a b --max-regression x%@p50                        | "x%@p50" | 5%@p50
a b --max-regression=-1%@p50                       | "-1%@p50"
a b --max-regression 5%@max                        | "max" | p99.9 | throughput
a b --max-regression 5%@latency.max                | "latency.max" | latency.p50
a b --max-regression 5%@p100                       | "p100"
a b --max-regression NaN%@p50                      | NaN%@p50
a b --max-regression 5%@p50,6%@p50                 | two limits of p50
a b --percentiles p0                               | --percentiles | "p0" | p99.9
a b --percentiles lost                             | "lost""#;

#[test]
fn bad_values_name_option_value_and_what_is_allowed() {
    for line in BAD.lines().skip(1) {
        let (words, told) = line.split_once(" | ").unwrap();
        let told: Vec<&str> = told.split(" | ").collect();
        parse(words.trim()).refused(&told);
    }
}
