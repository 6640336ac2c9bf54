//! What to do about rows that ended for a reason.

use crate::model::Reason;

/// What a person can do next about rows with this reason, as one sentence without its full stop; `None` where there
/// is nothing to do. `row` is one of them, if one is known; `place` is what a command that reads the run needs besides
/// it, with a blank before, as in ` --state DIR`.
pub fn hint(reason: Reason, row: Option<u64>, place: &str) -> Option<String> {
    let row = row.map_or_else(|| "ROW".to_owned(), |row| row.to_string());
    words(reason).map(|words| words.replace("ROW", &format!("{row}{place}")))
}

fn words(reason: Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::Agreed | Reason::Valid | Reason::Reviewed => return None,
        Reason::Split => {
            "the samples contradict each other and a person must decide: compare them with `verify show last ROW`"
        }
        Reason::SampleFailed => {
            "a sample brought no answer and a person must decide: look at one row with `verify show last ROW`"
        }
        Reason::LowConfidence => {
            "the confidence is below --auto-pass or --auto-fail and a person must decide: look at one row with \
             `verify show last ROW`"
        }
        Reason::RateLimited => {
            "the provider allows less than was asked: lower --concurrency or set --rpm and continue"
        }
        Reason::Timeout => {
            "no complete reply came in time: raise --timeout or lower --concurrency and continue"
        }
        Reason::Connection => "the connection failed: check the network and --base-url and continue",
        Reason::ServerError => "the provider failed: continue when it is well again",
        Reason::Rejected => {
            "the server does not take the request: look at its reply with `verify show last ROW`"
        }
        Reason::TooLong => {
            "the prompt does not fit the model: shorten it, or take a model with a longer context"
        }
        Reason::Refused => {
            "the model declined: read its words with `verify show last ROW`; change the prompt, or ask again with \
             `--retry refused`"
        }
        Reason::Filtered => {
            "a content filter cut the answer: look at the reply with `verify show last ROW`; ask again with \
             `--retry filtered`"
        }
        Reason::Truncated => {
            "the answers stop at the length limit: raise --max-output-tokens and run again, which asks these rows \
             only"
        }
        Reason::Empty => {
            "the model gave no text: look at the reply with `verify show last ROW`; where it reasons at length, \
             raise --max-output-tokens"
        }
        Reason::InvalidAnswer => {
            "the answers do not satisfy the schema: look at one with `verify show last ROW`, then make the prompt \
             or the schema clearer, or ask these rows again with `--retry invalid_answer`"
        }
        Reason::BadInput => {
            "the record cannot be used: correct it in the input; `verify check` lists such rows"
        }
        Reason::Budget => {
            "the ceiling is reached: raise --max-cost or --max-calls and run the same command again"
        }
        Reason::Deadline => "the time was over: the same command continues",
        Reason::Interrupted => "the run was interrupted: the same command continues",
        Reason::Stopped => {
            "the run could not go on: mend what the exit line names and run the same command again"
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_that_is_not_decided_has_a_hint() {
        for &reason in Reason::ALL {
            let decided = matches!(reason, Reason::Agreed | Reason::Valid | Reason::Reviewed);
            assert_eq!(hint(reason, Some(4), "").is_none(), decided, "{reason}");
        }
        assert!(hint(Reason::InvalidAnswer, Some(4), "").unwrap().contains("`verify show last 4`"));
        assert!(
            hint(Reason::Rejected, None, " --state s").unwrap().contains("`verify show last ROW --state s`")
        );
        assert!(hint(Reason::Truncated, Some(4), "").unwrap().contains("raise --max-output-tokens"));
    }
}
