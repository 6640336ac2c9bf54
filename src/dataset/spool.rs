//! The copy of standard input.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// How often a file is made anew that a sweep has taken away at the same moment.
const TRIES: usize = 16;

/// Copies `reader` to its end into the file `path`, readable by its owner only, in place of what was there, and to the
/// disk. The number of bytes. The kernel's lock on the file, held as long as the result, tells [`sweep_spools`] that
/// it is in use.
pub fn spool(mut reader: impl Read, path: &Path) -> io::Result<(u64, File)> {
    let mut file = locked(path)?;
    // The mode of its making counts for a new file only.
    file.set_permissions(Permissions::from_mode(0o600))?;
    let bytes = io::copy(&mut reader, &mut file)?;
    file.sync_all()?;
    Ok((bytes, file))
}

fn locked(path: &Path) -> io::Result<File> {
    for _ in 0..TRIES {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        // On a file system without locks nobody gets one, so nothing is swept there.
        let is_taken = matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock));
        if !is_taken && file.metadata()?.nlink() > 0 {
            return Ok(file);
        }
    }
    Err(io::Error::other("another process takes the file away"))
}

/// Removes copies in the folder whose names begin with `prefix` and whose processes died while they copied. One that
/// cannot be removed stays: it is in nobody's way.
pub fn sweep_spools(folder: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix));
        // The lock is held until the file is removed, so that its maker sees that it has gone.
        if is_ours
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && let Ok(file) = OpenOptions::new().write(true).open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_all_bytes_for_the_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdin");
        spool(&b"something longer"[..], &path).unwrap();
        assert_eq!(spool(&b"{}\n\xFF"[..], &path).unwrap().0, 4);
        assert_eq!(fs::read(&path).unwrap(), b"{}\n\xFF");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn copies_of_dead_processes_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        drop(spool(&b"dead"[..], &path("in-1")).unwrap());
        let living = spool(&b"living"[..], &path("in-2")).unwrap();
        drop(spool(&b"other"[..], &path("out-1")).unwrap());
        sweep_spools(folder.path(), "in-");
        assert!(!path("in-1").exists() && path("in-2").exists() && path("out-1").exists());
        drop(living);
        sweep_spools(folder.path(), "in-");
        assert!(!path("in-2").exists());
    }
}
