//! What a decoded reply means for its sample.

use crate::answer::{Reader, Unread};
use crate::model::{AttemptRecord, FailureClass, Lesson, Reason, Repair, ReplyContent};
use crate::policy::Outcome;

/// A reply, understood.
#[derive(Debug)]
pub(super) struct Understood {
    pub(super) outcome: Outcome,
    /// What a repair would carry, after an invalid answer.
    pub(super) repair: Option<Repair>,
    pub(super) lesson: Option<Lesson>,
    /// Bytes of text that the model has written, for an estimate.
    pub(super) text_len: usize,
}

impl Understood {
    pub(super) fn new(outcome: Outcome) -> Self {
        Self { outcome, repair: None, lesson: None, text_len: 0 }
    }
}

/// Checks the answer of a reply and notes in `record` what came of it. Errors are fixed sentences or the server's
/// words, never counts or times, so that equal failures read equal.
pub(super) fn understand(reader: &Reader, content: ReplyContent, record: &mut AttemptRecord) -> Understood {
    match content {
        ReplyContent::Text(text) => read(reader, text, record),
        ReplyContent::Truncated(text) => {
            let mut understood = unusable(record, Reason::Truncated, "the answer stops at the length limit");
            understood.text_len = text.len();
            understood
        }
        ReplyContent::Refused(words) => {
            let mut understood = unusable(record, Reason::Refused, &about("the model refused", &words));
            understood.text_len = words.len();
            understood
        }
        ReplyContent::Filtered(words) => {
            unusable(record, Reason::Filtered, &about("a content filter cut the answer", &words))
        }
        ReplyContent::Empty => unusable(record, Reason::Empty, "the answer holds no text"),
        ReplyContent::Unusable(why) => {
            let mut understood = unusable(record, Reason::InvalidAnswer, &why);
            understood.repair = Some(Repair { answer: String::new(), errors: vec![why] });
            understood
        }
        ReplyContent::Failed(failure) => {
            record.error = Some(failure.message.clone());
            let lesson = match &failure.class {
                FailureClass::Teaches(lesson) => Some(lesson.clone()),
                _ => None,
            };
            let invalid = failure.class == FailureClass::InvalidAnswer;
            let repair =
                invalid.then(|| Repair { answer: String::new(), errors: vec![failure.message.clone()] });
            Understood { outcome: Outcome::Failed(failure), repair, lesson, text_len: 0 }
        }
    }
}

fn read(reader: &Reader, text: String, record: &mut AttemptRecord) -> Understood {
    let text_len = text.len();
    let mut understood = match reader.read(&text) {
        Ok((answer, vote)) => {
            record.answer = Some(answer.text);
            record.extracted = answer.extracted;
            Understood::new(Outcome::Valid(vote))
        }
        Err(Unread::Empty) => unusable(record, Reason::Empty, "the answer holds no text"),
        Err(Unread::Truncated) => {
            unusable(record, Reason::Truncated, "the answer ends inside of its thinking")
        }
        Err(Unread::Invalid { errors }) => {
            let first = errors.first().map_or("it is no JSON", String::as_str);
            let message = format!("the answer does not satisfy the schema: {first}");
            let mut understood = unusable(record, Reason::InvalidAnswer, &message);
            understood.repair = Some(Repair { answer: text, errors });
            understood
        }
    };
    understood.text_len = text_len;
    understood
}

fn unusable(record: &mut AttemptRecord, reason: Reason, message: &str) -> Understood {
    record.error = Some(cut(message));
    Understood::new(Outcome::Unusable(reason))
}

fn about(what: &str, words: &str) -> String {
    if words.is_empty() { what.to_owned() } else { format!("{what}: {words}") }
}

/// At most 300 characters.
fn cut(text: &str) -> String {
    match text.char_indices().nth(300) {
        Some((at, _)) => text[..at].to_owned(),
        None => text.to_owned(),
    }
}
