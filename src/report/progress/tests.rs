use super::*;

fn snapshot() -> Snapshot {
    Snapshot {
        reason: std::collections::BTreeMap::new(),
        replayed: 0,
        tokens: crate::model::Usage::default(),
        at: WallTime(1_790_000_000_250),
        done: 120,
        total: 1_000,
        status: StatusCounts { pass: 100, fail: 10, review: 4, error: 6, skipped: 0 },
        attempts: 130,
        retries: 4,
        repairs: 2,
        throttled: 6,
        in_flight: 16,
        limit: 16,
        spent: Some(Money::from_pico(12_300_000_000)),
        possible: Some(Money::ZERO),
        ceiling: Some(Money::from_pico(5_000_000_000_000)),
        rows_per_minute: Some(480.0),
        eta: Some(Duration::from_secs(110)),
        next_permit: None,
        paused: None,
        keys: vec![KeyLine { label: "default".into(), in_flight: 16, limit: 0, state: String::new() }],
        oldest_in_flight: Some(Duration::from_millis(2_300)),
    }
}

#[test]
fn a_plain_line_says_what_matters() {
    assert_eq!(
        plain_line(&snapshot()),
        "120/1000 rows (12%); pass 100, fail 10, review 4, error 6; 480 rows/min, eta 1m 50s; \
         130 sent, 4 retried, 2 repaired, 16/16 in flight; throttled 6 (4.6%); $0.0123 of $5"
    );
    let start = Snapshot { total: 5, limit: 16, ..Snapshot::default() };
    assert_eq!(plain_line(&start), "0/5 rows (0%); 0 sent, 0/16 in flight; cost unknown");
    assert!(plain_line(&Snapshot::default()).starts_with("0/0 rows (100%)"));
}

#[test]
fn what_may_have_been_spent_is_told_beside_the_ceiling() {
    let mut pressed = snapshot();
    pressed.possible = Some(Money::from_pico(400_000_000_000));
    assert!(plain_line(&pressed).ends_with("; $0.0123 ($0.4 possible) of $5"), "{}", plain_line(&pressed));
    pressed.ceiling = None;
    assert!(plain_line(&pressed).ends_with("; $0.0123"), "{}", plain_line(&pressed));
}

#[test]
fn a_plain_line_names_pauses_and_keys_and_stays_one_line() {
    let mut pressed = snapshot();
    pressed.paused = Some("503\n\u{1b}[2Joverloaded".into());
    pressed.next_permit = Some(Duration::from_secs(12));
    pressed.keys = vec![
        KeyLine { label: "org-a".into(), in_flight: 3, limit: 100, state: String::new() },
        KeyLine { label: "org-b".into(), in_flight: 0, limit: 0, state: "waits 12s".into() },
    ];
    let line = plain_line(&pressed);
    assert!(
        line.contains("next permit in 12s, throttled 6 (4.6%), PAUSED: 503\\n\\u{1b}[2Joverloaded"),
        "{line}"
    );
    assert!(line.contains("; org-a 3/100, org-b 0 (waits 12s); "), "{line}");
    assert!(!line.chars().any(char::is_control));
}

#[test]
fn a_json_line_has_exact_numbers() {
    assert_eq!(
        json_line(&snapshot()),
        concat!(
            r#"{"at":"2026-09-21T14:13:20.250Z","done":120,"total":1000,"#,
            r#""status":{"pass":100,"fail":10,"review":4,"error":6,"skipped":0},"#,
            r#""attempts":130,"retries":4,"repairs":2,"throttled":6,"in_flight":16,"limit":16,"#,
            r#""spent_usd":0.0123,"ceiling_usd":5,"rows_per_minute":480,"eta_s":110,"next_permit_s":null,"#,
            r#""paused":null,"oldest_in_flight_ms":2300,"#,
            r#""keys":[{"label":"default","in_flight":16,"limit":0,"state":""}]}"#
        )
    );
}

#[test]
fn the_store_gives_back_what_it_was_given() {
    let mut exact = snapshot();
    exact.spent = Some(Money::from_pico(1));
    exact.rows_per_minute = Some(0.1 + 0.2);
    for snapshot in [exact, Snapshot::default()] {
        let text = snapshot.to_store_json();
        assert_eq!(Snapshot::from_store_json(&text).unwrap(), snapshot, "{text}");
    }
}

#[test]
fn the_store_reads_older_and_newer_forms_and_no_rubbish() {
    let read = Snapshot::from_store_json(r#"{"done":3,"later":[1]}"#).unwrap();
    assert_eq!(read, Snapshot { done: 3, ..Snapshot::default() });
    for text in ["", "[]x", r#"{"done":-1}"#, r#"{"status":7}"#] {
        assert!(Snapshot::from_store_json(text).is_err(), "{text}");
    }
}
