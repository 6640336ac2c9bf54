//! Events as JSON lines, for the log of a run.

use serde_json::{Map, Value, json};

use crate::base::WallTime;
use crate::model::{AttemptFact, Event, EventKind, Turn};
use crate::report::outcome_word;

/// An event as one line of JSON, without a line end: `seq`, `at`, `event`, and what belongs to it. `at` is the civil
/// time of the event.
pub fn event_json(event: &Event, at: WallTime) -> String {
    let (name, facts) = facts(&event.kind);
    let mut object = Map::new();
    object.insert("seq".to_owned(), event.seq.into());
    object.insert("at".to_owned(), at.to_rfc3339().into());
    object.insert("event".to_owned(), name.into());
    if let Value::Object(facts) = facts {
        object.extend(facts);
    }
    Value::Object(object).to_string()
}

fn facts(kind: &EventKind) -> (&'static str, Value) {
    match kind {
        EventKind::RowsPassed { count } => ("rows_passed", json!({ "count": count })),
        EventKind::AttemptFinished(fact) => ("attempt_finished", attempt(fact)),
        EventKind::Failed { row, message, text } => {
            ("failed", json!({ "row": row, "message": message, "text": text }))
        }
        EventKind::SampleReplayed { row, sample } => {
            ("sample_replayed", json!({ "row": row, "sample": sample }))
        }
        EventKind::RowFinished { row, status, reason } => {
            ("row_finished", json!({ "row": row, "status": status.as_str(), "reason": reason.as_str() }))
        }
        EventKind::KeyWaits { key, wait } => ("key_waits", json!({ "key": key, "wait_ms": millis(*wait) })),
        EventKind::KeyCools { key, message } => ("key_cools", json!({ "key": key, "message": message })),
        EventKind::KeyOut { key, fault, message } => {
            ("key_out", json!({ "key": key, "fault": fault.to_string(), "message": message }))
        }
        EventKind::OutageBegins { message } => ("outage_begins", json!({ "message": message })),
        EventKind::OutageEnds => ("outage_ends", json!({})),
        EventKind::Learned { message } => ("learned", json!({ "message": message })),
        EventKind::Stopping { message, in_flight } => {
            ("stopping", json!({ "message": message, "in_flight": in_flight }))
        }
    }
}

fn attempt(fact: &AttemptFact) -> Value {
    let ticket = fact.ticket;
    let cost = fact.cost.and_then(|cost| serde_json::from_str::<Value>(&cost.to_string()).ok());
    json!({
        "row": ticket.row,
        "sample": ticket.sample,
        "attempt": ticket.attempt,
        "outcome": outcome_word(fact.ending),
        "ms": millis(fact.took),
        "retry": fact.turn == Turn::Retry,
        "repair": fact.turn == Turn::Repair,
        "input": fact.usage.map(|usage| usage.input),
        "cached_input": fact.usage.map(|usage| usage.cached_input),
        "output": fact.usage.map(|usage| usage.output),
        "estimated": fact.estimated,
        "cost_usd": cost,
    })
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Moment;
    use crate::model::{Reason, Status};

    #[test]
    fn an_event_is_one_line_with_its_place_and_time() {
        let kind = EventKind::RowFinished { row: 4, status: Status::Error, reason: Reason::Timeout };
        let event = Event { seq: 9, at: Moment::ORIGIN, kind };
        assert_eq!(
            event_json(&event, WallTime(1_500)),
            "{\"seq\":9,\"at\":\"1970-01-01T00:00:01.500Z\",\"event\":\"row_finished\",\"row\":4,\"status\":\"error\",\"reason\":\"timeout\"}"
        );
    }
}
