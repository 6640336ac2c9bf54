//! Why an output cannot be written.

use std::io;

/// Why an output cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The reader of a pipe has gone: nothing is wrong, and nobody listens.
    #[error("{name} is closed")]
    Closed {
        /// The output as given.
        name: String,
    },
    /// No room is left.
    #[error("the disk that {name} is written to is full; free space and run again: nothing paid is lost")]
    Full {
        /// The output as given.
        name: String,
    },
    /// Writing failed.
    #[error("cannot write {name}")]
    Write {
        /// The output as given.
        name: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The target cannot be made or replaced; found before the first call.
    #[error("cannot write {name}; choose another place with --output")]
    Unwritable {
        /// The output as given.
        name: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The target is a folder.
    #[error("{name} is a folder; name a file with --output")]
    Folder {
        /// The output as given.
        name: String,
    },
    /// The target is the input, perhaps by another name.
    #[error("{name} is the input itself; name another file with --output")]
    InputItself {
        /// The output as given.
        name: String,
    },
    /// Two columns or members of the output would have one name.
    #[error(
        "{first} and {second} would both be named `{column}` in the output; choose other names with {flag}"
    )]
    Collision {
        /// The name.
        column: String,
        /// What has it.
        first: &'static str,
        /// What has it too.
        second: &'static str,
        /// The flag that helps.
        flag: &'static str,
    },
    /// The rows of a JSONL input have more different keys than a CSV file should have columns.
    #[error("the rows have more than {most} different keys, too many for columns; write JSONL instead")]
    TooManyColumns {
        /// The most columns.
        most: usize,
    },
}

impl OutputError {
    /// What an error of writing to `name` means.
    pub(in crate::output) fn writing(name: &str, source: io::Error) -> Self {
        let name = name.to_owned();
        match source.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed { name },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { name },
            _ => Self::Write { name, source },
        }
    }
}

impl OutputError {
    /// Whether a person fixes it in command, configuration or input, rather than an operator on the machine.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Closed { .. } | Self::Full { .. } | Self::Write { .. } | Self::Unwritable { .. } => false,
            Self::Folder { .. }
            | Self::InputItself { .. }
            | Self::Collision { .. }
            | Self::TooManyColumns { .. } => true,
        }
    }
}
