//! The note of each draw on a lease, made before its request goes.
//!
//! Notes are appended to a file without a wait for the disk: after a kill the kernel still has them. After a power
//! cut they may be lost, and then the whole lease counts, which was on disk before any of them.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::base::{AttemptKey, Money, Ticket};
use crate::run::error::RunError;

/// The draws of one execution.
#[derive(Debug)]
pub(super) struct Draws {
    file: File,
    path: PathBuf,
}

const NOTE: usize = 16;
/// No bound: the request was not sent.
const VOID: Money = Money::from_pico(-1);

impl Draws {
    /// Begins the notes of a run's execution in the state folder.
    pub(super) fn begin(dir: &Path, run: u64) -> Result<Self, RunError> {
        let path = Self::path(dir, run);
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(|source| failed(&path, source))?;
        Ok(Self { file, path })
    }

    fn path(dir: &Path, run: u64) -> PathBuf {
        dir.join("jobs").join(format!("draws-{run}"))
    }

    /// Notes that a request may now cost so much.
    pub(super) fn note(&mut self, run: u64, ticket: Ticket, bound: Money) -> Result<(), RunError> {
        let Ok(key) = AttemptKey::new(run, ticket) else { return Ok(()) };
        let mut note = [0; NOTE];
        note[..8].copy_from_slice(&key.as_i64().to_le_bytes());
        note[8..].copy_from_slice(&bound.pico().to_le_bytes());
        self.file.write_all(&note).map_err(|source| failed(&self.path, source))
    }

    /// Notes that the request was not sent after all. Should that fail, it counts as sent, which is too much only.
    pub(super) fn void(&mut self, run: u64, ticket: Ticket) {
        let _ = self.note(run, ticket, VOID);
    }

    /// The draws of an execution that has died, in the order of the rows. A request that was put off is noted again when
    /// it goes, so the last note of a request counts. One that was cut off belongs to a request that never went.
    pub(super) fn of_the_dead(dir: &Path, run: u64) -> Result<BTreeMap<AttemptKey, Money>, RunError> {
        let path = Self::path(dir, run);
        let mut bytes = Vec::new();
        match File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(source) => return Err(failed(&path, source)),
        }
        let number = |bytes: &[u8]| i64::from_le_bytes(bytes.try_into().unwrap_or_default());
        let mut draws: BTreeMap<AttemptKey, Money> = bytes
            .chunks_exact(NOTE)
            .map(|note| (AttemptKey::from_i64(number(&note[..8])), Money::from_pico(number(&note[8..]))))
            .collect();
        draws.retain(|_, bound| *bound != VOID);
        Ok(draws)
    }

    /// Forgets the notes of a run: all draws are settled or carried over.
    pub(super) fn forget(dir: &Path, run: u64) {
        // A file that stays is read again, and what it notes is found settled.
        let _ = std::fs::remove_file(Self::path(dir, run));
    }
}

fn failed(path: &Path, source: io::Error) -> RunError {
    RunError::Draws { path: path.to_owned(), source }
}

/// An id of this boot of the machine: what the kernel kept of files is gone in the next one. Empty where there is none.
pub(super) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_survive_and_torn_ones_do_not_count() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("jobs")).unwrap();
        let mut draws = Draws::begin(dir.path(), 3).unwrap();
        let ticket = Ticket { row: 7, sample: 1, attempt: 2 };
        draws.note(3, ticket, Money::from_pico(5)).unwrap();
        // One that was not sent, and one that was in the end.
        for (row, times) in [(8, 1), (9, 2)] {
            for time in 0..times {
                let ticket = Ticket { row, ..ticket };
                draws.note(3, ticket, Money::from_pico(6 + time)).unwrap();
                if time == 0 {
                    draws.void(3, ticket);
                }
            }
        }
        draws.file.write_all(&[1, 2, 3]).unwrap();
        drop(draws);
        let found = Draws::of_the_dead(dir.path(), 3).unwrap();
        let of = |row, pico| (AttemptKey::new(3, Ticket { row, ..ticket }).unwrap(), Money::from_pico(pico));
        assert_eq!(found, BTreeMap::from([of(7, 5), of(9, 7)]));
        Draws::forget(dir.path(), 3);
        assert!(Draws::of_the_dead(dir.path(), 3).unwrap().is_empty());
    }
}
