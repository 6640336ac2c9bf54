//! Temporary files beside an output: locked as long as their process lives, swept away by a later one.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::base::Digest;
use crate::output::target::folder_of;

/// What their names end with.
const SUFFIX: &str = ".tmp";
/// How often a name is tried that a sweep has taken away at the same moment.
const TRIES: usize = 16;

/// A new file beside `path`, with a name that no other has and the permissions that the output is to have: those of
/// the file that it replaces, or what a new file gets. The kernel's lock on it tells others that it is in use.
pub(super) fn temporary(path: &Path, mode: Option<u32>) -> io::Result<NamedTempFile> {
    for _ in 0..TRIES {
        let file = tempfile::Builder::new()
            .prefix(&prefix(path))
            .suffix(SUFFIX)
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder_of(path))?;
        // On a file system without locks nobody gets one, so nothing is swept there.
        if matches!(file.as_file().try_lock(), Err(fs::TryLockError::WouldBlock)) {
            continue;
        }
        // A sweep may have had the lock before.
        if file.as_file().metadata()?.nlink() == 0 {
            continue;
        }
        if let Some(mode) = mode {
            file.as_file().set_permissions(Permissions::from_mode(mode))?;
        }
        return Ok(file);
    }
    Err(io::Error::other("another process takes its temporary files away"))
}

/// Removes the temporary files of this output whose processes are dead. One that cannot be removed stays: it is in
/// nobody's way.
pub(super) fn sweep(path: &Path) {
    let prefix = prefix(path);
    let Ok(entries) = fs::read_dir(folder_of(path)) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_ours = name
            .to_str()
            .is_some_and(|name| name.strip_suffix(SUFFIX).is_some_and(|name| name.starts_with(&prefix)));
        if !is_ours || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let path = entry.path();
        // The lock is held until the file is removed, so that its maker sees that it has gone.
        if let Ok(file) = OpenOptions::new().write(true).open(&path)
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(&path);
        }
    }
}

/// What the names of the temporary files of one output begin with.
fn prefix(path: &Path) -> String {
    let name = path.file_name().unwrap_or(OsStr::new(""));
    format!(".verify-{}-", &Digest::of(name.as_encoded_bytes()).to_hex()[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_dead_process_left_is_swept_and_what_a_living_one_writes_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (mine, other) = (folder.path().join("out.csv"), folder.path().join("other.csv"));
        let stale = temporary(&mine, None).unwrap().into_temp_path().keep().unwrap();
        let living = temporary(&mine, Some(0o640)).unwrap();
        let of_another = temporary(&other, None).unwrap().into_temp_path().keep().unwrap();
        let foreign = folder.path().join(".verify-abc.tmp");
        fs::File::create(&foreign).unwrap();
        sweep(&mine);
        assert!(!stale.exists() && living.path().exists() && of_another.exists() && foreign.exists());
        sweep(&other);
        let left = living.path().file_name().unwrap().to_str().unwrap().to_owned();
        let mut expected = [left, ".verify-abc.tmp".to_owned()];
        expected.sort();
        assert_eq!(names(folder.path()), expected);
        living.persist(&mine).unwrap();
        sweep(&mine);
        assert!(mine.exists());
    }
}
