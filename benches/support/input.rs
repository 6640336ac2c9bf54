//! Made-up rows. Every text differs, so that no request is shared.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use super::Broken;

/// Bytes of a line, its end included.
const LINE: usize = 300;
const WORDS: [&str; 16] = [
    "the", "screen", "arrived", "late", "with", "battery", "cracked", "but", "service", "was", "quick",
    "and", "refund", "came", "within", "days",
];

/// The text of a row: plain ASCII that JSON does not escape. With it the row's line has 300 bytes.
pub(crate) fn text(row: u64) -> String {
    let mut text = format!("review {row}:");
    let mut state = row.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let room = LINE - line(row, "").len();
    while text.len() < room {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.push(' ');
        text.push_str(WORDS[usize::from(state.to_le_bytes()[3] % 16)]);
    }
    text.truncate(room);
    text
}

/// Writes rows 1 to `rows` as JSONL.
pub(crate) fn write(path: &Path, rows: u64) -> Result<(), Broken> {
    let mut file = BufWriter::new(File::create(path)?);
    for row in 1..=rows {
        file.write_all(line(row, &text(row)).as_bytes())?;
    }
    Ok(file.flush()?)
}

/// Writes one row with this text.
pub(crate) fn write_one(path: &Path, text: &str) -> Result<(), Broken> {
    Ok(File::create(path)?.write_all(line(1, text).as_bytes())?)
}

fn line(row: u64, text: &str) -> String {
    format!("{{\"n\":{row},\"text\":\"{text}\"}}\n")
}
