//! Small files that appear whole.

use std::io::Write as _;
use std::path::Path;

use crate::output::{OutputError, Target};

/// Writes a file of which all bytes are at hand: it appears whole under its name, or not at all.
///
/// # Errors
/// Those of [`Target`].
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), OutputError> {
    let mut target = Target::prepare(Some(path), Path::new(""))?;
    let mut sink = target.begin()?;
    let written = sink.write_all(bytes).and_then(|()| sink.finish());
    if let Err(error) = written {
        let failed = OutputError::writing(target.name(), error);
        target.abandon();
        return Err(failed);
    }
    target.commit().map(|_| ())
}
