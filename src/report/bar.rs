//! The progress bar of a terminal.

use std::fmt;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::model::Status;
use crate::report::Snapshot;
use crate::report::layout::Paint;

/// One bar and a line of counters on stderr; nothing at all where stderr is no terminal. It is drawn once for
/// each snapshot, cut to the terminal's width: ten snapshots a second are plenty.
pub struct Bar {
    bar: ProgressBar,
    paint: Paint,
}

impl fmt::Debug for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bar").field("hidden", &self.is_hidden()).finish_non_exhaustive()
    }
}

impl Bar {
    /// A bar for `total` rows, in colour or not.
    pub fn new(total: u64, color: bool) -> Self {
        // The library draws at each change of a part; only the whole is worth drawing, which `update` forces.
        Self::on(ProgressDrawTarget::stderr_with_hz(1), total, color)
    }

    fn on(target: ProgressDrawTarget, total: u64, color: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), target);
        let template = if color {
            "[{wide_bar:.green}] {prefix}\n{wide_msg}"
        } else {
            "[{wide_bar}] {prefix}\n{wide_msg}"
        };
        // The templates above are sound; were they not, the library's own look would do.
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("=> "));
        Self { bar, paint: Paint(color) }
    }

    /// Shows a snapshot.
    pub fn update(&self, snapshot: &Snapshot) {
        let mut head = format!("{}/{} {}%", snapshot.done, snapshot.total, snapshot.percent());
        for part in snapshot.pace_parts() {
            head.push(' ');
            head.push_str(&part);
        }
        self.bar.set_length(snapshot.total);
        self.bar.set_prefix(head);
        self.bar.set_message(counters(snapshot, self.paint));
        self.bar.set_position(snapshot.done.min(snapshot.total));
        self.bar.force_draw();
    }

    /// Runs `print`, which may write lines to the terminal, while the bar is out of the way.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Takes the bar from the screen.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Whether nothing is drawn, because stderr is no terminal.
    pub fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }
}

/// The line beneath the bar. What presses on the run comes first: the end of the line is cut on a narrow screen.
fn counters(snapshot: &Snapshot, paint: Paint) -> String {
    let mut parts = Vec::new();
    let pressure = snapshot.pressure_parts().join(" ");
    if !pressure.is_empty() {
        parts.push(paint.warning(&pressure));
    }
    let statuses: Vec<String> = Status::ALL
        .iter()
        .map(|&status| (status, snapshot.status.get(status)))
        .filter(|(status, count)| *count > 0 || *status != Status::Skipped)
        .map(|(status, count)| paint.status(status, count, &format!("{status} {count}")))
        .collect();
    parts.push(statuses.join(" "));
    parts.push(format!("{}/{} in flight", snapshot.in_flight, snapshot.limit));
    parts.push(snapshot.money_text());
    parts.extend(snapshot.key_parts());
    parts.join(" | ")
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::TermLike;

    use super::*;
    use crate::base::Money;
    use crate::model::StatusCounts;

    /// A terminal that remembers every line written to it.
    #[derive(Debug, Clone)]
    struct Screen {
        width: u16,
        written: Arc<Mutex<String>>,
    }

    impl Screen {
        fn write(&self, text: &str) -> io::Result<()> {
            self.written.lock().map_err(|_| io::Error::other("poisoned"))?.push_str(text);
            Ok(())
        }
    }

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            self.width
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            self.write("\n")
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write(text)?;
            self.write("\n")
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.write(text)
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
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
            rows_per_minute: Some(480.0),
            ..Snapshot::default()
        }
    }

    fn drawn(width: u16) -> Vec<String> {
        let screen = Screen { width, written: Arc::default() };
        let bar = Bar::on(ProgressDrawTarget::term_like(Box::new(screen.clone())), 100, false);
        bar.update(&snapshot());
        let written = screen.written.lock().unwrap().clone();
        // What was drawn last, after the cursor went back; lines fill the width and wrap by themselves.
        let last: Vec<char> = written.rsplit('\n').next().unwrap_or_default().chars().collect();
        let width = usize::from(width);
        last.chunks(width).map(|line| line.iter().collect::<String>().trim_end().to_owned()).collect()
    }

    #[test]
    fn draws_a_bar_and_a_line_of_counters() {
        let lines = drawn(80);
        let [bar, line] = lines.as_slice() else { panic!("{lines:?}") };
        assert!(bar.starts_with("[====") && bar.ends_with("] 50/100 50% 480 rows/min"), "{bar}");
        assert_eq!(line, "throttled 6 (10.0%) | pass 40 fail 10 review 0 error 0 | 8/16 in flight | $0.012");
        assert_eq!(bar.len(), 80);
    }

    #[test]
    fn respects_a_narrow_terminal() {
        let lines = drawn(40);
        let [bar, line] = lines.as_slice() else { panic!("{lines:?}") };
        assert!(bar.ends_with("] 50/100 50% 480 rows/min") && bar.len() == 40, "{bar}");
        assert!("throttled 6 (10.0%) | pass 40 fail 10 review".starts_with(line.as_str()), "{line}");
    }

    #[test]
    fn is_hidden_without_a_terminal_and_still_lets_others_print() {
        let bar = Bar::on(ProgressDrawTarget::hidden(), 3, true);
        bar.update(&snapshot());
        assert!(bar.is_hidden());
        assert_eq!(bar.suspend(|| 7), 7);
        bar.finish();
    }
}
