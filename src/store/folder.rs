//! The state folder: made for its owner alone, and kept out of version control.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use crate::store::StoreError;

/// Makes the state folder `dir` with its parents, mode 0700, and a `.gitignore` of `*` in it.
///
/// A folder that exists keeps its mode, and gets the `.gitignore` only while nothing of others is in it: who
/// passes `--state .` does not want a whole project ignored.
///
/// Errors: [`StoreError::Unwritable`], [`StoreError::Full`].
pub fn prepare_folder(dir: &Path) -> Result<(), StoreError> {
    make(dir).map_err(|source| StoreError::from_io(dir, source))
}

fn make(dir: &Path) -> io::Result<()> {
    if !dir.is_dir() {
        if let Some(parent) = dir.parent() {
            fs::create_dir_all(parent)?;
        }
        match builder().create(dir) {
            // Another process may have been faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
            made => made?,
        }
    }
    if holds_only_state(dir)? {
        match private().create_new(true).write(true).open(dir.join(".gitignore")) {
            Ok(mut file) => file.write_all(b"*\n")?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn holds_only_state(dir: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        let ours = name
            .to_str()
            .is_some_and(|name| ["jobs", "spool", "store.db"].iter().any(|ours| name.starts_with(ours)));
        if !ours && name != ".gitignore" {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes the file of the store with mode 0600, or takes that much away from one that is there. `SQLite` gives the
/// log and its index the mode of the file.
pub(super) fn make_file(path: &Path) -> io::Result<()> {
    private().create(true).append(true).open(path)?;
    restrict(path);
    Ok(())
}

#[cfg(unix)]
fn builder() -> DirBuilder {
    use std::os::unix::fs::DirBuilderExt as _;
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

#[cfg(not(unix))]
fn builder() -> DirBuilder {
    DirBuilder::new()
}

#[cfg(unix)]
fn private() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

#[cfg(not(unix))]
fn private() -> OpenOptions {
    OpenOptions::new()
}

#[cfg(unix)]
fn restrict(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    if fs::metadata(path).is_ok_and(|data| data.permissions().mode() & 0o077 != 0) {
        // Fails for a file of somebody else, who then has decided its mode.
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o600));
    }
}

#[cfg(not(unix))]
fn restrict(_path: &Path) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_others_gets_no_gitignore() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("src")).unwrap();
        prepare_folder(dir.path()).unwrap();
        assert!(!dir.path().join(".gitignore").exists());

        let jobs_first = dir.path().join("state");
        fs::create_dir_all(jobs_first.join("jobs")).unwrap();
        prepare_folder(&jobs_first).unwrap();
        prepare_folder(&jobs_first).unwrap();
        assert_eq!(fs::read_to_string(jobs_first.join(".gitignore")).unwrap(), "*\n");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_look() {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("deep").join(".verify");
        prepare_folder(&state).unwrap();
        assert_eq!(mode(&state), 0o700);
        let file = state.join("store.db");
        fs::File::create(&file).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        make_file(&file).unwrap();
        assert_eq!(mode(&file), 0o600);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("taken");
        fs::File::create(&file).unwrap();
        for state in [file.clone(), file.join("state")] {
            let error = prepare_folder(&state).unwrap_err();
            assert!(matches!(error, StoreError::Unwritable { .. }), "{error:?}");
            assert!(error.to_string().contains(state.to_str().unwrap()), "{error}");
        }
    }
}
