//! What `verify status` says of a run.

use std::fmt::Write as _;

use crate::base::{RunId, WallTime};
use crate::report::layout::Paint;
use crate::report::measure::{eta_text, grouped};
use crate::report::{Cost, Exit, Snapshot, printable};

/// What becomes of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunState {
    /// A process works on it.
    Running,
    /// Its last execution ended.
    Ended {
        /// How.
        exit: Exit,
        /// When.
        at: WallTime,
    },
    /// Its last execution has no ending, and no process works on it: it was killed, or the machine went down.
    Killed,
}

/// What is known of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusView {
    /// Its id.
    pub run: RunId,
    /// The execution of which this tells, from 1.
    pub execution: u64,
    /// The path of the input, or `-`.
    pub input: String,
    /// The free text that the configuration gives the prompt's version.
    pub version: String,
    /// When the execution began.
    pub started: WallTime,
    /// What becomes of it.
    pub state: RunState,
    /// The newest snapshot, or one made from what the store holds.
    pub snapshot: Snapshot,
    /// What it has cost, over all its executions.
    pub cost: Cost,
    /// The command that continues the run; `None` where nothing is left to do.
    pub resume: Option<String>,
}

/// The lines of `verify status`, with a line end. `now` tells how old things are.
pub fn status_text(view: &StatusView, now: WallTime, color: bool) -> String {
    let paint = Paint(color);
    let snapshot = &view.snapshot;
    let running = view.state == RunState::Running;
    let mut text = format!(
        "{}\n",
        paint.bold(&format!("run {}, execution {}: {}", view.run, view.execution, printable(&view.input)))
    );
    let mut push = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(text, "  {name:<8}  {value}");
        }
    };
    push("state", &state_text(view, now, paint));
    push("version", &printable(&view.version));
    push(
        "rows",
        &format!("{} of {} ({}%)", grouped(snapshot.done), grouped(snapshot.total), snapshot.percent()),
    );
    push("", &snapshot.statuses_text());
    push(
        "requests",
        &format!(
            "{} sent, {} retried, {} throttled",
            grouped(snapshot.attempts),
            grouped(snapshot.retries),
            grouped(snapshot.throttled)
        ),
    );
    push("cost", &cost_text(&view.cost, snapshot.status.pass));
    if running {
        push("rate", &snapshot.pace_parts().join(", "));
        push("flight", &flight_text(snapshot));
        let waits = Snapshot { throttled: 0, ..snapshot.clone() }.pressure_parts().join(", ");
        push("waits", &if waits.is_empty() { waits } else { paint.warning(&waits) });
        let taken = now.since(snapshot.at);
        if taken.as_secs() >= 10 && snapshot.at != WallTime::default() {
            push("as of", &format!("{} ago", eta_text(taken)));
        }
    }
    for (index, key) in snapshot.keys.iter().enumerate() {
        push(if index == 0 { "keys" } else { "" }, &key.text());
    }
    if let Some(command) = view.resume.as_deref().filter(|_| !running) {
        push("continue", &printable(command));
    }
    text
}

/// What was spent, by how well it is known; the share of a pass, and the ceiling.
fn cost_text(cost: &Cost, passes: u64) -> String {
    let mut text = cost.parts_text();
    if let Some(share) = cost.per_pass(passes) {
        let _ = write!(text, "; ${share}/pass");
    }
    if let Some(ceiling) = cost.ceiling {
        let _ = write!(text, "; ceiling ${ceiling}");
    }
    text
}

fn state_text(view: &StatusView, now: WallTime, paint: Paint) -> String {
    let started = view.started.to_rfc3339();
    match &view.state {
        RunState::Running => {
            format!("running for {}, since {started}", eta_text(now.since(view.started)))
        }
        RunState::Ended { exit, at } => {
            let text = format!("ended at {}, exit {}: {}", at.to_rfc3339(), exit.code, printable(&exit.why));
            paint.verdict(exit.code == 0, &text)
        }
        RunState::Killed => paint.verdict(false, &format!("killed; begun at {started}")),
    }
}

fn flight_text(snapshot: &Snapshot) -> String {
    let mut text = format!("{} of {} requests", snapshot.in_flight, snapshot.limit);
    if let Some(age) = snapshot.oldest_in_flight {
        let _ = write!(text, ", the oldest for {}", eta_text(age));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::base::Money;
    use crate::model::StatusCounts;
    use crate::report::KeyLine;

    const RUN: &str = "0193a1b2-0000-7000-8000-000000000001";

    fn view(state: RunState) -> StatusView {
        StatusView {
            run: RUN.parse().unwrap(),
            execution: 2,
            input: "products.csv".into(),
            version: "v7".into(),
            started: WallTime(1_790_000_000_000),
            state,
            snapshot: Snapshot {
                at: WallTime(1_790_000_060_000),
                done: 120,
                total: 1_000,
                status: StatusCounts { pass: 110, fail: 10, ..StatusCounts::default() },
                attempts: 1_130,
                retries: 4,
                throttled: 6,
                in_flight: 16,
                limit: 16,
                spent: Some(Money::from_pico(12_300_000_000)),
                rows_per_minute: Some(480.0),
                eta: Some(Duration::from_secs(110)),
                keys: vec![
                    KeyLine { label: "org-a".into(), in_flight: 16, limit: 100, state: String::new() },
                    KeyLine { label: "org-b".into(), state: "waits 12s".into(), ..KeyLine::default() },
                ],
                oldest_in_flight: Some(Duration::from_secs(75)),
                ..Snapshot::default()
            },
            cost: Cost {
                spent: Some(Money::from_pico(12_300_000_000)),
                estimated: Some(Money::from_pico(100_000_000)),
                possible: None,
                ceiling: Some(Money::from_pico(5_000_000_000_000)),
            },
            resume: Some("verify run products.csv".into()),
        }
    }

    #[test]
    fn a_running_run_shows_its_pace_keys_and_oldest_request() {
        assert_eq!(
            status_text(&view(RunState::Running), WallTime(1_790_000_061_000), false),
            "\
run 0193a1b2-0000-7000-8000-000000000001, execution 2: products.csv
  state     running for 1m 1s, since 2026-09-21T14:13:20.000Z
  version   v7
  rows      120 of 1,000 (12%)
            pass 110, fail 10
  requests  1,130 sent, 4 retried, 6 throttled
  cost      $0.0122 exact, $0.0001 estimated, an unknown sum possible; $0.000111818/pass; ceiling $5
  rate      480 rows/min, eta 1m 50s
  flight    16 of 16 requests, the oldest for 1m 15s
  keys      org-a 16/100
            org-b 0 (waits 12s)
"
        );
        let late = status_text(&view(RunState::Running), WallTime(1_790_000_120_000), false);
        assert!(late.contains("  as of     1m ago\n"), "{late}");
    }

    #[test]
    fn an_ended_and_a_killed_run_say_how_to_go_on() {
        let exit = Exit { code: 130, why: "interrupted by\u{1b}[2J SIGINT".into() };
        let mut ended = view(RunState::Ended { exit, at: WallTime(1_790_000_060_000) });
        ended.snapshot.keys.clear();
        ended.version.clear();
        assert_eq!(
            status_text(&ended, WallTime(1_790_009_000_000), false),
            "\
run 0193a1b2-0000-7000-8000-000000000001, execution 2: products.csv
  state     ended at 2026-09-21T14:14:20.000Z, exit 130: interrupted by\\u{1b}[2J SIGINT
  rows      120 of 1,000 (12%)
            pass 110, fail 10
  requests  1,130 sent, 4 retried, 6 throttled
  cost      $0.0122 exact, $0.0001 estimated, an unknown sum possible; $0.000111818/pass; ceiling $5
  continue  verify run products.csv
"
        );
        let killed = status_text(&view(RunState::Killed), WallTime(1_790_009_000_000), true);
        assert!(killed.contains("\u{1b}[31mkilled; begun at 2026-09-21T14:13:20.000Z\u{1b}[0m"), "{killed}");
        assert!(killed.contains("  continue  verify run products.csv\n"), "{killed}");
    }
}
