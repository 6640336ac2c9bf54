use super::*;
use crate::model::{Reason, Status};
use crate::report::FailureGroups;

fn passing() -> Summary {
    Summary {
        run: "0193a1b2-0000-7000-8000-000000000001".parse().unwrap(),
        execution: 1,
        version: String::new(),
        input: Input {
            path: "products.csv".into(),
            digest: "ab12".into(),
            rows: Some(1_000),
            selected: 1_000,
        },
        status: StatusCounts { pass: 1_000, ..StatusCounts::default() },
        reason: [(Reason::Agreed, 1_000)].into(),
        exit: Some(Exit { code: 0, why: "every row finished and every gate holds".into() }),
        attempts: 1_012,
        retries: 12,
        repairs: 0,
        throttled: 0,
        replayed: 0,
        tokens: Usage { input: 900_000, output: 60_000, ..Usage::default() },
        cost: Cost {
            spent: Some(Money::from_pico(123_400_000_000)),
            estimated: Some(Money::ZERO),
            possible: Some(Money::ZERO),
            ceiling: None,
        },
        wall: Duration::from_millis(125_300),
        finished_here: 1_000,
        sent_here: 1_012,
        rows_per_minute: Some(478.851),
        requests_per_minute: Some(484.6),
        latency: Latency {
            p50: Some(Duration::from_micros(812_400)),
            p95: Some(Duration::from_millis(2_410)),
        },
        started: WallTime(1_790_000_000_250),
        ended: Some(WallTime(1_790_000_125_550)),
        files: vec!["products.verified.csv".into()],
        resume: None,
        place: String::new(),
        failures: Vec::new(),
    }
}

fn mixed() -> Summary {
    let mut groups = FailureGroups::new();
    for row in [4, 17, 23, 40, 41, 42, 43, 44] {
        groups.add(row, Reason::InvalidAnswer, "\"n\" is not of type \"integer\"");
    }
    groups.add(5, Reason::InvalidAnswer, "\"ok\" is a required property");
    groups.add(9, Reason::InvalidAnswer, "\"ok\" is a required property");
    groups.add(600, Reason::Truncated, "");
    groups.add(77, Reason::RateLimited, "Rate limit reached\u{1b}[2J for requests");
    let mut summary = passing();
    summary.status = StatusCounts { pass: 950, fail: 30, review: 8, error: 12, skipped: 0 };
    summary.reason = [
        (Reason::Agreed, 980),
        (Reason::Split, 3),
        (Reason::LowConfidence, 5),
        (Reason::InvalidAnswer, 10),
        (Reason::Truncated, 1),
        (Reason::RateLimited, 1),
    ]
    .into();
    summary.exit = Some(Exit { code: 1, why: "30 rows fail, more than max_fail = 0".into() });
    summary.throttled = 5;
    summary.repairs = 1;
    summary.replayed = 20;
    summary.version = "v7".into();
    summary.tokens.cached_input = 10_000;
    summary.cost.estimated = Some(Money::from_pico(400_000_000));
    summary.cost.possible = Some(Money::from_pico(20_000_000_000));
    summary.cost.ceiling = Some(Money::from_pico(5_000_000_000_000));
    summary.resume = Some("verify run products.csv".into());
    summary.failures = groups.into_groups();
    summary
}

fn interrupted() -> Summary {
    let mut summary = passing();
    summary.input = Input { path: "-".into(), digest: "ab12".into(), rows: Some(5_000), selected: 20 };
    summary.status = StatusCounts { pass: 7, fail: 1, skipped: 12, ..StatusCounts::default() };
    summary.reason = [(Reason::Valid, 7), (Reason::Agreed, 1), (Reason::Interrupted, 12)].into();
    summary.exit = Some(Exit { code: 130, why: "interrupted by SIGINT".into() });
    summary.execution = 2;
    (summary.finished_here, summary.sent_here) = (5, 1);
    summary.attempts = 9;
    summary.retries = 1;
    summary.files = vec!["out.jsonl.partial".into()];
    summary.resume =
        Some("verify run - --prompt 'Is {{ text }} spam?' --column spam=boolean -o out.jsonl".into());
    summary
}

fn unknown_cost() -> Summary {
    let mut summary = passing();
    summary.input.selected = 3;
    summary.input.rows = Some(3);
    summary.status.pass = 3;
    summary.reason = [(Reason::Valid, 3)].into();
    summary.cost = Cost::default();
    summary.rows_per_minute = None;
    summary.requests_per_minute = None;
    summary.latency = Latency::default();
    summary.files.clear();
    summary
}

fn running() -> Summary {
    let mut summary = passing();
    summary.status.pass = 10;
    summary.exit = None;
    summary.ended = None;
    summary
}

#[test]
fn all_pass() {
    assert_eq!(
        passing().to_text(80, false),
        "\
products.csv: 1,000 rows in 2m 5s

  pass      1,000   1,000 agreed
  fail          0
  review        0
  error         0
  skipped       0

  requests  1,012 sent, 12 retries (1.2%), 0 throttled
  tokens    900,000 input, 60,000 output; 960 a row
  cost      $0.1234 exact, $0 estimated, $0 possible; $0.0001234/pass
  time      2m 5s, 479 rows/min, 485 requests/min
  latency   p50 812ms, p95 2.4s
  files     products.verified.csv
  run       0193a1b2-0000-7000-8000-000000000001, execution 1
  exit      0: every row finished and every gate holds
"
    );
}

#[test]
fn mixed_failures() {
    assert_eq!(
        mixed().to_text(80, false),
        r#"products.csv: 1,000 rows in 2m 5s

  pass        950   950 agreed
  fail         30   30 agreed
  review        8   5 low_confidence, 3 split
  error        12   10 invalid_answer, 1 rate_limited, 1 truncated
  skipped       0

To look at
  10 invalid_answer
       8 x "n" is not of type "integer" (rows 4, 17, 23, ...)
       2 x "ok" is a required property (rows 5, 9)
       hint: the answers do not satisfy the schema: look at one with
             `verify show last 4`, then make the prompt or the schema clearer,
             or ask these rows again with `--retry invalid_answer`
   5 low_confidence
       hint: the confidence is below --auto-pass or --auto-fail and a person
             must decide: look at one row with `verify show last ROW`
   3 split
       hint: the samples contradict each other and a person must decide: compare
             them with `verify show last ROW`
   1 rate_limited
       1 x Rate limit reached\u{1b}[2J for requests (row 77)
       hint: the provider allows less than was asked: lower --concurrency or set
             --rpm and continue
   1 truncated
       1 x row 600
       hint: the answers stop at the length limit: raise --max-output-tokens and
             run again, which asks these rows only

  requests  1,012 sent, 12 retries (1.2%), 1 repair, 5 throttled; 20 answers
            replayed
  tokens    900,000 input (10,000 of it cached), 60,000 output; 960 a row
  cost      $0.123 exact, $0.0004 estimated, $0.02 possible; $0.000129895/pass;
            ceiling $5
  time      2m 5s, 479 rows/min, 485 requests/min
  latency   p50 812ms, p95 2.4s
  files     products.verified.csv
  run       0193a1b2-0000-7000-8000-000000000001, execution 1, prompt version v7
  exit      1: 30 rows fail, more than max_fail = 0
  continue  verify run products.csv
"#
    );
}

#[test]
fn an_interrupted_run_names_the_command_that_continues_it() {
    assert_eq!(
        interrupted().to_text(80, false),
        "\
-: 20 rows of 5,000, 5 of them in execution 2 in 2m 5s

  pass       7   7 valid
  fail       1   1 agreed
  review     0
  error      0
  skipped   12   12 interrupted

To look at
  12 interrupted
       hint: the run was interrupted: the same command continues

  requests  9 sent, 1 retry (11.1%), 0 throttled
  tokens    900,000 input, 60,000 output; 120,000 a row
  cost      $0.1234 exact, $0 estimated, $0 possible; $0.017628571/pass
  time      2m 5s for 5 rows and 1 request of execution 2, 479 rows/min, 485
            requests/min
  latency   p50 812ms, p95 2.4s
  files     out.jsonl.partial
  run       0193a1b2-0000-7000-8000-000000000001, execution 2; counts, tokens
            and cost are of all 2 executions, time and latency of this one
  exit      130: interrupted by SIGINT
  continue  verify run - --prompt 'Is {{ text }} spam?' --column spam=boolean -o out.jsonl
"
    );
}

#[test]
fn an_unknown_cost_is_said_to_be_unknown() {
    assert_eq!(
        unknown_cost().to_text(80, false),
        "\
products.csv: 3 rows in 2m 5s

  pass      3   3 valid
  fail      0
  review    0
  error     0
  skipped   0

  requests  1,012 sent, 12 retries (1.2%), 0 throttled
  tokens    900,000 input, 60,000 output; 320,000 a row
  cost      unknown: the model has no price; set one with --price
            'input=1,output=4'
  time      2m 5s
  run       0193a1b2-0000-7000-8000-000000000001, execution 1
  exit      0: every row finished and every gate holds
"
    );
}

#[test]
fn a_run_without_requests_costs_nothing() {
    let mut summary = passing();
    summary.attempts = 0;
    summary.cost = Cost::of(&Totals::default(), Some(Money::ZERO), None);
    assert!(summary.to_text(80, false).contains("\n  cost      $0\n"));
}

#[test]
fn a_running_run_shows_what_waits() {
    let text = running().to_text(80, false);
    assert!(text.starts_with("products.csv: 1,000 rows, running for 2m 5s\n"), "{text}");
    assert!(text.contains("\n  waiting     990\n"), "{text}");
    assert!(!text.contains("  exit "), "{text}");
}

#[test]
fn colour_adds_nothing_but_colour() {
    for summary in [passing(), mixed(), interrupted(), unknown_cost(), running()] {
        let plain = summary.to_text(80, false);
        let mut stripped = summary.to_text(80, true);
        assert!(stripped.contains("\u{1b}[32m"));
        for code in ["0", "1", "2", "31", "32", "33"] {
            stripped = stripped.replace(&format!("\u{1b}[{code}m"), "");
        }
        assert_eq!(stripped, plain);
        assert!(plain.chars().all(|c| c == '\n' || !c.is_control()));
        let wide = plain.lines().find(|line| line.chars().count() > 80 && !line.contains("verify run -"));
        assert_eq!(wide, None);
    }
}

#[test]
fn many_messages_of_one_reason_are_cut_short() {
    let mut groups = FailureGroups::new();
    for row in 1..=60 {
        groups.add(row, Reason::Rejected, &format!("no {row}"));
    }
    let mut summary = passing();
    summary.failures = groups.into_groups();
    summary.place = " --state 'the state'".into();
    let text = summary.to_text(80, false);
    assert!(text.contains("`verify show last 1 --state 'the state'`"), "{text}");
    assert!(text.contains("  10 x other messages (rows 51, 52, 53, ...)\n"), "{text}");
    assert!(text.contains("       and 46 more messages\n"), "{text}");
    assert!(text.contains("  60 rejected\n"), "{text}");
}

#[test]
fn json_is_the_object_to_the_letter() {
    assert_eq!(
        mixed().to_json(),
        concat!(
            r#"{"schema":"verify-summary/1","run":"0193a1b2-0000-7000-8000-000000000001","execution":1,"#,
            r#""input":{"path":"products.csv","digest":"ab12","rows":1000,"selected":1000},"#,
            r#""status":{"pass":950,"fail":30,"review":8,"error":12,"skipped":0},"#,
            r#""reason":{"agreed":980,"split":3,"low_confidence":5,"rate_limited":1,"truncated":1,"invalid_answer":10},"#,
            r#""exit":{"code":1,"why":"30 rows fail, more than max_fail = 0"},"#,
            r#""attempts":1012,"retries":12,"throttled":5,"replayed":20,"#,
            r#""tokens":{"input":900000,"cached_input":10000,"output":60000},"#,
            r#""cost":{"spent_usd":0.1234,"estimated_usd":0.0004,"possible_usd":0.02,"ceiling_usd":5,"per_pass_usd":0.000129895},"#,
            r#""wall_s":125.3,"rows_per_minute":478.85,"latency_ms":{"p50":812,"p95":2410},"#,
            r#""started":"2026-09-21T14:13:20.250Z","ended":"2026-09-21T14:15:25.550Z","#,
            r#""files":["products.verified.csv"],"continue":"verify run products.csv"}"#
        )
    );
    let running = running().to_json();
    assert!(running.contains(r#""exit":{"code":null,"why":null}"#), "{running}");
    assert!(
        running.contains(r#""ended":null,"files""#) && running.ends_with(r#""continue":null}"#),
        "{running}"
    );
    let unknown = unknown_cost().to_json();
    assert!(
        unknown.contains(
            r#""cost":{"spent_usd":null,"estimated_usd":null,"possible_usd":null,"ceiling_usd":null,"per_pass_usd":null}"#
        ),
        "{unknown}"
    );
    assert!(unknown.contains(r#""rows_per_minute":null,"latency_ms":{"p50":null,"p95":null}"#), "{unknown}");
}

#[test]
fn objects_satisfy_the_schema_in_docs() {
    let schema = serde_json::from_str(include_str!("../../../docs/summary.schema.json")).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let mut every = passing();
    every.reason = Reason::ALL.iter().map(|reason| (*reason, 1)).collect();
    every.input.rows = None;
    for summary in [passing(), mixed(), interrupted(), unknown_cost(), running(), every] {
        let object = serde_json::from_str(&summary.to_json()).unwrap();
        let errors: Vec<_> = validator.iter_errors(&object).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?} in {object}");
    }
    assert!(!validator.is_valid(&serde_json::json!({"schema": "verify-summary/1"})));
}

#[test]
fn the_cost_of_a_pass_is_rounded_once_and_half_up() {
    let share = |pico, passes| {
        let cost = Cost { spent: Some(Money::from_pico(pico)), ..Cost::default() };
        cost.per_pass(passes).map(|money| money.to_string())
    };
    assert_eq!(share(10_000, 0), None);
    assert_eq!(share(1_000, 2).as_deref(), Some("0.000000001"));
    assert_eq!(share(998, 2).as_deref(), Some("0"));
    // 499.67 units: rounded to whole units first it would become half a billionth and then a whole one.
    assert_eq!(share(1_499, 3).as_deref(), Some("0"));
    assert_eq!(share(i64::MAX, 1).as_deref(), Some("9223372.036854776"));
    assert_eq!(Cost::default().per_pass(1), None);
}

#[test]
fn one_attempt_without_a_price_makes_the_cost_unknown() {
    let mut totals = Totals { spent: Money::from_pico(5), ..Totals::default() };
    totals.add_row(Status::Pass, Reason::Valid);
    let ceiling = Some(Money::from_pico(9));
    let known = Cost::of(&totals, Some(Money::ZERO), ceiling);
    assert_eq!((known.spent, known.possible), (Some(Money::from_pico(5)), Some(Money::ZERO)));
    totals.unpriced = true;
    let unknown = Cost::of(&totals, Some(Money::ZERO), ceiling);
    assert_eq!(unknown, Cost { ceiling, ..Cost::default() });
}
