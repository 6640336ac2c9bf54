//! The progress bar of a terminal, as text: a bar, and under it what a person watches a run for.

use crate::model::Status;
use crate::report::Snapshot;
use crate::report::layout::{Paint, columns, wrap};

/// A block of lines that is drawn over itself. Nothing is written here: each change is one text, to be written in one
/// piece, so that nothing flickers.
///
/// The cursor rests at the start of the line below the block. What the terminal echoes there (`^C`) shifts nothing,
/// and the next change wipes it away.
#[derive(Debug)]
pub struct Bar {
    paint: Paint,
    lines: Vec<Line>,
}

impl Bar {
    /// The most lines for keys.
    const KEY_LINES: usize = 2;

    /// A bar that is not on the screen yet, in colour or not.
    pub fn new(color: bool) -> Self {
        Self { paint: Paint(color), lines: Vec::new() }
    }

    /// Shows a snapshot on a terminal of `width` columns.
    pub fn update(&mut self, snapshot: &Snapshot, width: usize) -> String {
        let back = self.back(width);
        // One column stays free: a full line makes some terminals wrap and others wait.
        self.lines = self.drawn(snapshot, width.saturating_sub(1).max(1));
        back + &self.block()
    }

    /// Writes a message above the bar, broken at spaces where it is longer than the screen is wide.
    pub fn above(&self, message: &str, width: usize) -> String {
        let lines: String = wrap(message, width).into_iter().map(|line| line + "\u{1b}[K\n").collect();
        format!("{}{lines}{}", self.back(width), self.block())
    }

    /// Takes the bar from a screen of `width` columns.
    pub fn finish(&mut self, width: usize) -> String {
        let back = self.back(width);
        // Line by line: some terminals keep a screen that is cleared as a whole in their history.
        let text = format!("{back}{}{back}", "\u{1b}[K\n".repeat(self.rows(width)));
        self.lines.clear();
        text
    }

    /// To the start of the block.
    fn back(&self, width: usize) -> String {
        let rows = self.rows(width);
        if rows == 0 { String::new() } else { format!("\r\u{1b}[{rows}A") }
    }

    /// The rows of the block on the screen: more than its lines if the terminal became narrower.
    fn rows(&self, width: usize) -> usize {
        self.lines.iter().map(|line| line.used.div_ceil(width.max(1)).max(1)).sum()
    }

    fn block(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            text.push_str(&line.text);
            // The rest of what stood there.
            text.push_str("\u{1b}[K\n");
        }
        if !text.is_empty() {
            text.push_str("\u{1b}[J");
        }
        text
    }

    fn drawn(&self, snapshot: &Snapshot, room: usize) -> Vec<Line> {
        let mut lines =
            vec![self.head(snapshot, room), self.counts(snapshot, room), self.pressure(snapshot, room)];
        lines.extend(keys(snapshot, room));
        lines
    }

    /// The bar, and how far it is.
    fn head(&self, snapshot: &Snapshot, room: usize) -> Line {
        let mut parts = vec![format!("{}/{} {}%", snapshot.done, snapshot.total, snapshot.percent())];
        parts.extend(snapshot.pace_parts());
        let mut line = Line::new(room);
        let head = parts.join(" ");
        let cells = room.saturating_sub(columns(&head) + 3);
        if cells >= 8 {
            let share = u128::from(snapshot.done.min(snapshot.total)) * cells as u128;
            let full = share.checked_div(snapshot.total.into()).and_then(|full| usize::try_from(full).ok());
            let full = full.unwrap_or(cells);
            let tip = if full < cells && full > 0 { ">" } else { "" };
            let bar = format!("{}{tip}", "=".repeat(full - tip.len()));
            line.push("[", str::to_owned);
            line.push(&bar, |bar| if bar.is_empty() { String::new() } else { self.paint.verdict(true, bar) });
            line.push(&format!("{}] ", " ".repeat(cells - full)), str::to_owned);
        }
        line.push(&head, str::to_owned);
        line
    }

    /// What became of the rows, and what it cost so far.
    fn counts(&self, snapshot: &Snapshot, room: usize) -> Line {
        let mut line = Line::new(room);
        for status in Status::ALL {
            let count = snapshot.status.get(status);
            if count > 0 || status != Status::Skipped {
                line.part(" ", &format!("{status} {count}"), |text| self.paint.status(status, count, text));
            }
        }
        line.part(" | ", &snapshot.money_text(), str::to_owned);
        line
    }

    /// What is under way, and what presses on it.
    fn pressure(&self, snapshot: &Snapshot, room: usize) -> Line {
        let mut line = Line::new(room);
        line.part("", &format!("{}/{} in flight", snapshot.in_flight, snapshot.limit), str::to_owned);
        for part in snapshot.pressure_parts() {
            line.part(" | ", &part, |text| self.paint.warning(text));
        }
        line
    }
}

/// The keys, as many on a line as fit, on at most [`Bar::KEY_LINES`] lines; the rest is counted.
fn keys(snapshot: &Snapshot, room: usize) -> Vec<Line> {
    let parts = snapshot.key_parts();
    let mut lines: Vec<Line> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let is_last_line = lines.len() == Bar::KEY_LINES;
        let rest = format!("and {} more", parts.len() - at);
        // Unless it is the last key, there must be room for the count of the rest behind it.
        let spare = if is_last_line && at + 1 < parts.len() { 3 + rest.len() } else { 0 };
        match lines.last_mut() {
            Some(line) if line.used + 3 + columns(part) + spare <= room => {
                line.part(" | ", part, str::to_owned);
            }
            Some(line) if is_last_line => {
                line.part(" | ", &rest, str::to_owned);
                break;
            }
            _ => {
                let mut line = Line::new(room);
                line.part("", part, str::to_owned);
                lines.push(line);
            }
        }
    }
    lines
}

/// A line that grows up to its room. What does not fit is cut, and an ellipsis says so.
#[derive(Debug)]
struct Line {
    text: String,
    used: usize,
    room: usize,
}

impl Line {
    fn new(room: usize) -> Self {
        Self { text: String::new(), used: 0, room }
    }

    /// Adds a part, behind `gap` unless it is the first.
    fn part(&mut self, gap: &str, text: &str, paint: impl FnOnce(&str) -> String) {
        let gap = if self.used == 0 { "" } else { gap };
        if self.used + columns(gap) < self.room {
            self.push(gap, str::to_owned);
            self.push(text, paint);
        }
    }

    fn push(&mut self, text: &str, paint: impl FnOnce(&str) -> String) {
        let room = self.room - self.used;
        let shown = cut(text, room);
        self.used += columns(&shown);
        self.text.push_str(&paint(&shown));
    }
}

/// The text in at most `room` columns.
fn cut(text: &str, room: usize) -> String {
    if columns(text) <= room {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += columns(c.encode_utf8(&mut [0; 4]));
        if used >= room {
            break;
        }
        cut.push(c);
    }
    if room > 0 {
        cut.push('\u{2026}');
    }
    cut
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::base::Money;
    use crate::model::StatusCounts;
    use crate::report::KeyLine;

    fn key(label: &str, state: &str) -> KeyLine {
        KeyLine { label: label.into(), in_flight: 3, limit: 100, state: state.into() }
    }

    fn snapshot() -> Snapshot {
        Snapshot {
            done: 50,
            total: 100,
            status: StatusCounts { pass: 40, fail: 10, ..StatusCounts::default() },
            attempts: 60,
            throttled: 6,
            in_flight: 8,
            limit: 16,
            spent: Some(Money::from_pico(12_300_000_000)),
            ceiling: Some(Money::from_pico(5_000_000_000_000)),
            rows_per_minute: Some(480.0),
            eta: Some(Duration::from_secs(7)),
            ..Snapshot::default()
        }
    }

    /// The lines on the screen, control sequences left out.
    fn drawn(snapshot: &Snapshot, width: usize) -> Vec<String> {
        let text = Bar::new(false).update(snapshot, width);
        let plain = text.replace("\u{1b}[K", "").replace("\u{1b}[J", "");
        plain.lines().map(str::to_owned).collect()
    }

    #[test]
    fn shows_how_far_what_became_what_it_costs_and_what_presses() {
        let mut all = snapshot();
        all.next_permit = Some(Duration::from_millis(1_200));
        all.keys = vec![key("org-a", ""), key("org-b", "waits 2s"), key("org-c", "out: unauthorized")];
        let lines = drawn(&all, 80);
        let [bar, counts, pressure, keys] = lines.as_slice() else { panic!("{lines:?}") };
        assert!(bar.starts_with("[====") && bar.ends_with("] 50/100 50% 480 rows/min eta 7s"), "{bar}");
        assert_eq!(bar.len(), 79);
        assert_eq!(counts, "pass 40 fail 10 review 0 error 0 | $0.0123 of $5");
        assert_eq!(pressure, "8/16 in flight | next permit in 2s | throttled 6 (10.0%)");
        assert_eq!(keys, "org-a 3/100 | org-b 3/100 (waits 2s) | org-c 3/100 (out: unauthorized)");
    }

    #[test]
    fn no_line_reaches_the_edge_at_any_width() {
        let mut wide = snapshot();
        wide.paused = Some("connection refused ".repeat(20));
        wide.keys = (0..40).map(|n| key(&format!("key-{n}-\u{540d}"), "out: unauthorized")).collect();
        for width in 1..200 {
            for color in [false, true] {
                let mut bar = Bar::new(color);
                let text = bar.update(&wide, width);
                assert!(bar.lines.iter().all(|line| line.used < width.max(2)), "{width}: {text}");
                assert!(bar.lines.len() <= 5, "{width}: {text}");
            }
        }
        let lines = drawn(&wide, 80);
        assert!(lines[2].starts_with("8/16 in flight | throttled 6 (10.0%) | PAUSED: connection refused"));
        assert!(lines[2].ends_with('\u{2026}'), "{lines:?}");
        assert!(lines[4].ends_with("| and 37 more"), "{lines:?}");
    }

    #[test]
    fn is_full_only_when_all_is_done() {
        let at = |done, total| drawn(&Snapshot { done, total, ..Snapshot::default() }, 80).remove(0);
        assert!(at(0, 0).starts_with("[====") && !at(0, 0).contains('>'));
        assert!(at(0, 100).starts_with("[    "));
        assert!(at(99_999, 100_000).contains("=> ] "));
        assert!(!at(100, 100).contains('>'));
        assert!(at(u64::MAX, u64::MAX).contains("100%"));
    }

    #[test]
    fn draws_over_itself_and_leaves_nothing() {
        let mut bar = Bar::new(false);
        assert_eq!(bar.finish(80), "");
        let first = bar.update(&snapshot(), 80);
        assert!(first.starts_with('[') && first.ends_with("\u{1b}[K\n\u{1b}[J"), "{first:?}");
        assert!(bar.update(&snapshot(), 80).starts_with("\r\u{1b}[3A["));
        let said = bar.above("a key is out", 80);
        assert!(said.starts_with("\r\u{1b}[3Aa key is out\u{1b}[K\n["), "{said:?}");
        assert!(bar.above(&"word ".repeat(30), 80).contains("word word\u{1b}[K\nword "));
        // Two of the lines stand on two rows each of a terminal that has become half as wide.
        assert!(bar.update(&snapshot(), 40).starts_with("\r\u{1b}[5A"));
        let wiped = "\u{1b}[K\n".repeat(3);
        assert_eq!(bar.finish(80), format!("\r\u{1b}[3A{wiped}\r\u{1b}[3A"));
        assert_eq!(bar.finish(80), "");
    }
}
