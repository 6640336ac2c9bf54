//! One process a job: a lock of the kernel on a file, which a dead process cannot leave behind.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;

use crate::base::{Digest, RunId};
use crate::run::error::RunError;

/// The lock of a job, held until it is dropped. The text in its file is for people; the lock is the kernel's.
#[derive(Debug)]
pub struct JobLock {
    file: File,
    about: String,
}

impl JobLock {
    /// Takes the lock of a job in the state folder `dir`, or says who has it.
    pub fn take(dir: &Path, job: Digest, pid: u32, host: &str) -> Result<Self, RunError> {
        let folder = dir.join("jobs");
        let path = folder.join(file_name(job));
        let failed = |source| RunError::Lock { path: path.clone(), source };
        private_folder(&folder).map_err(failed)?;
        let mut file = private_file(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                let _ = file.read_to_string(&mut owner);
                let owner = owner.trim().replace('\n', ", ");
                let owner = if owner.is_empty() { "it has not said which".to_owned() } else { owner };
                return Err(RunError::Locked { owner });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let mut lock = Self { file, about: format!("pid {pid}\nhost {host}\n") };
        let about = lock.about.clone();
        lock.write(&about).map_err(failed)?;
        Ok(lock)
    }

    /// Whether some process holds the lock of a job.
    pub fn is_held(dir: &Path, job: Digest) -> bool {
        let path = dir.join("jobs").join(file_name(job));
        File::open(path).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Whether some process holds the lock of a job other than these.
    pub fn is_any_held(dir: &Path, but: &BTreeSet<Digest>) -> bool {
        let names: BTreeSet<String> = but.iter().map(|job| file_name(*job)).collect();
        let Ok(entries) = std::fs::read_dir(dir.join("jobs")) else { return false };
        entries
            .flatten()
            .filter(|entry| !entry.file_name().to_str().is_some_and(|name| names.contains(name)))
            .any(|entry| {
                File::open(entry.path())
                    .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
            })
    }

    /// Notes which run the job works on.
    pub fn tell_run(&mut self, run: RunId) {
        let text = format!("{}run {run}\n", self.about);
        // The text is for people: the lock holds without it.
        let _ = self.write(&text);
    }

    fn write(&mut self, text: &str) -> std::io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())?;
        self.file.flush()
    }
}

fn file_name(job: Digest) -> String {
    format!("{}.lock", &job.to_hex()[..32])
}

#[cfg(unix)]
fn private_folder(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(not(unix))]
fn private_folder(path: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(path)
}

fn private_file(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::WallTime;

    #[test]
    fn the_second_is_told_who_the_first_is() {
        let dir = tempfile::tempdir().unwrap();
        let job = Digest::of(b"job");
        let mut first = JobLock::take(dir.path(), job, 41, "here").unwrap();
        let run = RunId::new(WallTime(1));
        first.tell_run(run);
        let refused = JobLock::take(dir.path(), job, 42, "here").unwrap_err().to_string();
        assert!(refused.contains("pid 41, host here") && refused.contains(&run.to_string()), "{refused}");
        assert!(JobLock::take(dir.path(), Digest::of(b"other"), 42, "here").is_ok());
        assert!(JobLock::is_any_held(dir.path(), &BTreeSet::new()));
        assert!(!JobLock::is_any_held(dir.path(), &BTreeSet::from([job])));
        drop(first);
        assert!(JobLock::take(dir.path(), job, 42, "here").is_ok());
    }
}
