//! The copy of standard input.

use std::fs::{OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Copies `reader` to its end into the file `path`, readable by its owner only, in place of what was there. The
/// number of bytes.
pub fn spool(mut reader: impl Read, path: &Path) -> io::Result<u64> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // The mode above counts for a new file only.
    file.set_permissions(Permissions::from_mode(0o600))?;
    io::copy(&mut reader, &mut file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_all_bytes_for_the_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdin");
        spool(&b"something longer"[..], &path).unwrap();
        assert_eq!(spool(&b"{}\n\xFF"[..], &path).unwrap(), 4);
        assert_eq!(std::fs::read(&path).unwrap(), b"{}\n\xFF");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
