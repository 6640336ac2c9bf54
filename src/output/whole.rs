//! Small files that appear whole.

use std::io::{self, Read};
use std::path::Path;

use crate::output::{OutputError, Target};

/// Writes a file of which all bytes are at hand: it appears whole under its name, or not at all.
///
/// # Errors
/// Those of [`Target`].
pub fn write_whole(path: &Path, mut bytes: impl Read) -> Result<(), OutputError> {
    let mut target = Target::prepare(Some(path), Path::new(""))?;
    let mut sink = target.begin()?;
    let written = io::copy(&mut bytes, &mut sink).and_then(|_| sink.finish());
    if let Err(error) = written {
        let failed = OutputError::writing(target.name(), error);
        target.abandon();
        return Err(failed);
    }
    target.commit().map(|_| ())
}
