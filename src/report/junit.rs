//! The rows as test cases, for CI servers that show `JUnit`'s XML.

use std::fmt::Write as _;
use std::time::Duration;

use crate::model::{RowResult, Status, StatusCounts};

/// The start of the file. `suite` is the input's path.
pub fn junit_head(suite: &str, counts: &StatusCounts, wall: Duration) -> String {
    let suite = escaped(suite);
    let numbers = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3}\"",
        counts.total(),
        counts.fail + counts.review,
        counts.error,
        counts.skipped,
        wall.as_secs_f64()
    );
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"verify\" {numbers}>\n  \
         <testsuite name=\"{suite}\" {numbers}>\n"
    )
}

/// A row: nothing within it for a pass, `failure` for fail and review, `error`, `skipped`. The type is the reason.
pub fn junit_case(suite: &str, result: &RowResult) -> String {
    let id = result.id.as_deref().map(|id| format!(" {}", id.trim_matches('"'))).unwrap_or_default();
    let case =
        format!("    <testcase classname=\"{}\" name=\"row {}{}\"", escaped(suite), result.row, escaped(&id));
    let element = match result.status {
        Status::Pass => return case + "/>\n",
        Status::Fail | Status::Review => "failure",
        Status::Error => "error",
        Status::Skipped => {
            return format!("{case}><skipped message=\"{}\"/></testcase>\n", result.reason.as_str());
        }
    };
    let mut message = format!("{}: {}", result.status.as_str(), result.reason.as_str());
    if let Some(error) = &result.error {
        let _ = write!(message, ": {error}");
    }
    let answer = result.answer.as_ref().map(|answer| escaped(&answer.text)).unwrap_or_default();
    format!(
        "{case}><{element} type=\"{}\" message=\"{}\">{answer}</{element}></testcase>\n",
        result.reason.as_str(),
        escaped(&message)
    )
}

/// The end of the file.
pub const JUNIT_TAIL: &str = "  </testsuite>\n</testsuites>\n";

/// Text for XML 1.0, in content and in attributes. Characters that XML cannot hold become U+FFFD.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            '\t' => out.push_str("&#9;"),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Reason, RowUsage, SampleCounts};

    fn row(status: Status, reason: Reason) -> RowResult {
        RowResult {
            row: 7,
            id: Some("\"a<b\"".to_owned()),
            status,
            reason,
            answer: None,
            confidence: None,
            agreement: None,
            samples: SampleCounts::default(),
            model: None,
            error: Some("it said \"no\" & \u{1b}left\n".to_owned()),
            usage: RowUsage::default(),
        }
    }

    #[test]
    fn statuses_become_elements() {
        let case = |status, reason| junit_case("in.csv", &row(status, reason));
        assert_eq!(
            case(Status::Pass, Reason::Agreed),
            "    <testcase classname=\"in.csv\" name=\"row 7 a&lt;b\"/>\n"
        );
        let failed = case(Status::Review, Reason::Split);
        assert!(failed.contains("<failure type=\"split\" message=\"review: split: it said &quot;no&quot; &amp; \u{fffd}left&#10;\"></failure>"), "{failed}");
        assert!(case(Status::Error, Reason::Timeout).contains("<error type=\"timeout\""));
        assert!(case(Status::Skipped, Reason::Deadline).contains("<skipped message=\"deadline\"/>"));
    }
}
