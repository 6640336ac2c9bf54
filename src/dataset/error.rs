//! Why an input cannot be used.

use std::io;

/// Why an input cannot be used. Everything but [`DatasetError::Changed`] is for a person to mend before a run.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The file cannot be opened or read.
    #[error("cannot read {file}")]
    Unreadable {
        /// The file as given.
        file: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is a folder, a pipe or a device: it cannot be read more than once.
    #[error("{file} is no regular file, which is read more than once; pipe its content into `-` instead")]
    NotAFile {
        /// The file as given.
        file: String,
    },
    /// It begins with the magic bytes of gzip or Zstandard, and its name does not say so.
    #[error("{file} is compressed ({with}){}", way_to_unpack(file))]
    Compressed {
        /// The file as given.
        file: String,
        /// `gzip` or `zstd`.
        with: &'static str,
    },
    /// A compressed file ends too early, or its checksum does not fit.
    #[error("the archive {file} {what} ({with}); fetch or make it again")]
    Damaged {
        /// The file as given.
        file: String,
        /// `gzip` or `zstd`.
        with: &'static str,
        /// What is wrong with it, as in `is cut off`.
        what: &'static str,
    },
    /// Size or time of change are not those of the check pass, or the file is not there any more.
    #[error("{file} has changed or gone since it was checked; run again when it is complete")]
    Changed {
        /// The file as given.
        file: String,
    },
    /// Bytes that are no text in the file's encoding.
    #[error("{file}, line {line}, byte offset {offset}: not valid {encoding}{}", hint(encoding))]
    Undecodable {
        /// The file as given.
        file: String,
        /// Line, from 1.
        line: u64,
        /// Offset of the first bad byte in the file, from 0.
        offset: u64,
        /// The encoding that was tried.
        encoding: &'static str,
    },
    /// A record is longer than `max_record`.
    #[error(
        "{file}, {}, which begins on line {line}, is longer than {limit} bytes; \
         look for a quote that is not closed, or raise --max-record", record(*row)
    )]
    RecordTooLong {
        /// The file as given.
        file: String,
        /// Row number; `None` for the header.
        row: Option<u64>,
        /// Line on which the record begins, from 1.
        line: u64,
        /// The most bytes.
        limit: usize,
    },
    /// The CSV header ends within a quoted field.
    #[error("{file}, line {line}: the header has a quoted field that is not closed")]
    OpenHeader {
        /// The file as given.
        file: String,
        /// Line on which it begins, from 1.
        line: u64,
    },
    /// Two CSV columns have one name.
    #[error("{file}: columns {first} and {second} are both named `{name}`; rename one")]
    DuplicateColumn {
        /// The file as given.
        file: String,
        /// The name.
        name: String,
        /// Position of the first, from 1.
        first: usize,
        /// Position of the second, from 1.
        second: usize,
    },
    /// Two rows have one id.
    #[error("{file}: rows {first} and {second} have the same {column} {id}; an id column must be unique")]
    DuplicateId {
        /// The file as given.
        file: String,
        /// The id column.
        column: String,
        /// The value as JSON text.
        id: String,
        /// The row that had it first.
        first: u64,
        /// The row that has it again.
        second: u64,
    },
    /// The id column is not there.
    #[error("{file} has no column `{column}` to take ids from; it has {columns}")]
    NoIdColumn {
        /// The file as given.
        file: String,
        /// The column asked for.
        column: String,
        /// The columns that are there, or how it is known that there is none.
        columns: String,
    },
    /// `--rows` names rows that are not there.
    #[error("{file} has {rows} rows, and no row {asked} for --rows or show")]
    RowsBeyondEnd {
        /// The file as given.
        file: String,
        /// The last row asked for.
        asked: u64,
        /// The rows that are there.
        rows: u64,
    },
    /// There is nothing to do.
    #[error("{file} has no rows{why}; --allow-empty makes that fine")]
    NoRows {
        /// The file as given.
        file: String,
        /// What else is known, as a clause that begins with a comma or a space; may be empty.
        why: &'static str,
    },
    /// The temporary index of ids failed.
    #[error("cannot check that ids of {file} are unique, through a temporary file")]
    Index {
        /// The file as given.
        file: String,
        /// Why.
        #[source]
        source: rusqlite::Error,
    },
}

fn way_to_unpack(file: &str) -> &'static str {
    if file == "-" {
        "; unpack it on the way, as in `gzip -dc in.jsonl.gz | verify run -`"
    } else {
        ", which its name does not say; let it end in .gz or .zst, or unpack it"
    }
}

fn hint(encoding: &str) -> &'static str {
    if encoding == "UTF-8" {
        "; if the file has another encoding, name it, as in --encoding windows-1252"
    } else {
        ""
    }
}

fn record(row: Option<u64>) -> String {
    row.map_or_else(|| "the header".to_owned(), |row| format!("row {row}"))
}
