//! Where the bytes of an output go.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::base::CrashPoint;
use crate::output::temporary::{sweep, temporary};
use crate::output::{OutputError, Sink};

/// Links that are followed before they count as a circle, as in the kernel.
const MOST_LINKS: usize = 40;

/// A place for an output, known to be usable: standard output, a device or a FIFO, which are written in order, or a
/// regular file, which appears whole under its name when it is committed.
#[derive(Debug)]
pub struct Target {
    name: String,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Stdout,
    Stream(PathBuf),
    File { path: PathBuf, mode: Option<u32>, temporary: Option<NamedTempFile> },
}

impl Target {
    /// Looks at the place before anything is sent. `path`: `None` for standard output. `input`: the file that is
    /// read, which is refused under any name. For a regular file, links are followed, and a temporary file is made
    /// beside it and removed again: whatever would keep the output from being written is found here.
    pub fn prepare(path: Option<&Path>, input: &Path) -> Result<Self, OutputError> {
        let input = fs::metadata(input).ok();
        let Some(path) = path.filter(|path| !names_stdout(path)) else {
            let target = Self { name: "standard output".to_owned(), place: Place::Stdout };
            // A closed standard output is found when something is written to it.
            let own = stdout().and_then(|file| file.metadata()).ok();
            return if own.is_some_and(|own| own.is_file() && is_same(&own, input.as_ref())) {
                Err(OutputError::InputItself { name: target.name })
            } else {
                Ok(target)
            };
        };
        let name = path.display().to_string();
        let unwritable = |source| OutputError::Unwritable { name: name.clone(), source };
        let present = match fs::metadata(path) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(unwritable(error)),
        };
        if let Some(metadata) = &present {
            if metadata.is_dir() {
                return Err(OutputError::Folder { name });
            }
            if is_same(metadata, input.as_ref()) {
                return Err(OutputError::InputItself { name });
            }
            if !metadata.is_file() {
                // A FIFO would wait for its reader here.
                if metadata.file_type().is_char_device() {
                    OpenOptions::new().write(true).open(path).map_err(unwritable)?;
                }
                return Ok(Self { name, place: Place::Stream(path.to_owned()) });
            }
            // Renaming would replace a file that its owner has protected.
            OpenOptions::new().write(true).open(path).map_err(unwritable)?;
        }
        let resolved = resolve(path).map_err(unwritable)?;
        // A commit replaces or removes the partial output of an earlier run.
        if fs::metadata(partial(&resolved)).is_ok_and(|metadata| is_same(&metadata, input.as_ref())) {
            return Err(OutputError::InputItself { name: partial(path).display().to_string() });
        }
        let mode = present.map(|metadata| metadata.permissions().mode() & 0o7777);
        temporary(&resolved, mode).map_err(unwritable)?;
        Ok(Self { name, place: Place::File { path: resolved, mode, temporary: None } })
    }

    /// Whether rows are seen as they are written, so that they must be in order and flushed.
    pub fn is_stream(&self) -> bool {
        !matches!(self.place, Place::File { .. })
    }

    /// The file that is there and that a complete output replaces; `None` for a stream and a new file.
    pub fn replaces(&self) -> Option<&Path> {
        match &self.place {
            Place::File { path, mode: Some(_), .. } => Some(path),
            _ => None,
        }
    }

    /// The name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Opens the place. What is written to the result is unbuffered, and compressed where the name says so. A FIFO waits here for its reader. A second call
    /// begins a regular file anew. What processes that have died left beside a regular file is removed.
    pub fn begin(&mut self) -> Result<Sink, OutputError> {
        let opened = match &mut self.place {
            Place::Stdout => stdout(),
            Place::Stream(path) => OpenOptions::new().write(true).open(path),
            Place::File { path, mode, temporary: slot } => temporary(path, *mode).and_then(|made| {
                sweep(path);
                CrashPoint::OutputBegun.pass();
                let file = made.as_file().try_clone();
                *slot = Some(made);
                file
            }),
        };
        let is_regular = !self.is_stream();
        let sink = opened.and_then(|file| match self.place {
            Place::Stdout => Ok(Sink::plain(file)),
            _ => Sink::new(Path::new(&self.name), file, is_regular),
        });
        sink.map_err(|error| OutputError::writing(&self.name, error))
    }

    /// Ends a complete output: a regular file is on disk and has replaced whatever had its name, and a partial one
    /// of an earlier run is gone. The file's path; `None` for a stream, and if nothing was begun.
    pub fn commit(self) -> Result<Option<PathBuf>, OutputError> {
        self.settle(false)
    }

    /// Ends an output whose run has stopped: a regular file gets `.partial` behind its name, and a complete one of
    /// an earlier run stays. The file's path; `None` for a stream, and if nothing was begun.
    pub fn commit_partial(self) -> Result<Option<PathBuf>, OutputError> {
        self.settle(true)
    }

    /// Ends without an output: the temporary file is removed. Dropping the target does the same.
    pub fn abandon(self) {
        drop(self);
    }

    fn settle(self, is_partial: bool) -> Result<Option<PathBuf>, OutputError> {
        let Place::File { path, temporary: Some(temporary), .. } = self.place else { return Ok(None) };
        let failed = |error| OutputError::writing(&self.name, error);
        CrashPoint::OutputWritten.pass();
        temporary.as_file().sync_all().map_err(failed)?;
        CrashPoint::OutputSynced.pass();
        let goal = if is_partial { partial(&path) } else { path.clone() };
        temporary.persist(&goal).map_err(|error| failed(error.error))?;
        CrashPoint::OutputRenamed.pass();
        if !is_partial {
            match fs::remove_file(partial(&path)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                Ok(()) | Err(_) => {}
            }
        }
        // The file is complete by now; some file systems cannot sync a folder, and that is no failure.
        if let Ok(folder) = File::open(folder_of(&path)) {
            let _ = folder.sync_all();
        }
        Ok(Some(goal))
    }
}

/// Standard output as a file: without the line buffer that the standard library puts before it.
fn stdout() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

fn names_stdout(path: &Path) -> bool {
    ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

fn is_same(one: &Metadata, other: Option<&Metadata>) -> bool {
    other.is_some_and(|other| one.dev() == other.dev() && one.ino() == other.ino())
}

/// The file that a path names, links followed, whether or not it is there yet.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Some(name) = path.file_name() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path ends with no file name"));
        };
        let here = fs::canonicalize(folder_of(&path))?.join(name);
        match fs::read_link(&here) {
            // Joining an absolute path replaces the folder.
            Ok(goal) => path = folder_of(&here).join(goal),
            Err(_) => return Ok(here),
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "the links go round in a circle"))
}

pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn partial(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".partial");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use super::*;

    struct Place {
        folder: tempfile::TempDir,
    }

    impl Place {
        /// A folder with an input `in.csv`.
        fn new() -> Self {
            let place = Self { folder: tempfile::tempdir().unwrap() };
            place.put("in.csv", "input");
            place
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn put(&self, name: &str, text: &str) {
            File::create(self.path(name)).unwrap().write_all(text.as_bytes()).unwrap();
        }

        fn text(&self, name: &str) -> Option<String> {
            fs::read_to_string(self.path(name)).ok()
        }

        fn prepare(&self, name: &str) -> Result<Target, OutputError> {
            Target::prepare(Some(&self.path(name)), &self.path("in.csv"))
        }

        fn begun(&self, name: &str, text: &str) -> Target {
            let mut target = self.prepare(name).unwrap();
            target.begin().unwrap().write_all(text.as_bytes()).unwrap();
            target
        }

        fn names(&self) -> Vec<String> {
            let names = fs::read_dir(self.folder.path()).unwrap();
            let mut names: Vec<_> =
                names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    #[test]
    fn a_file_appears_whole_and_replaces_what_was_there() {
        let place = Place::new();
        place.put("out.csv", "old");
        place.put("out.csv.partial", "part");
        fs::set_permissions(place.path("out.csv"), fs::Permissions::from_mode(0o640)).unwrap();
        let target = place.begun("out.csv", "new");
        assert!(!target.is_stream());
        assert_eq!(place.text("out.csv").as_deref(), Some("old"));
        let written = target.commit().unwrap().unwrap();
        assert_eq!(written, fs::canonicalize(place.path("out.csv")).unwrap());
        assert_eq!(place.text("out.csv").as_deref(), Some("new"));
        assert_eq!(place.names(), ["in.csv", "out.csv"]);
        assert_eq!(fs::metadata(written).unwrap().permissions().mode() & 0o7777, 0o640);
    }

    #[test]
    fn a_new_file_has_the_usual_permissions() {
        let place = Place::new();
        place.begun("out.csv", "new").commit().unwrap();
        let mode = |name: &str| fs::metadata(place.path(name)).unwrap().permissions().mode();
        assert_eq!(mode("out.csv"), mode("in.csv"));
    }

    #[test]
    fn a_stopped_run_leaves_the_older_file_alone() {
        let place = Place::new();
        place.put("out.csv", "old");
        assert!(
            place.begun("out.csv", "part").commit_partial().unwrap().unwrap().ends_with("out.csv.partial")
        );
        assert_eq!(place.text("out.csv").as_deref(), Some("old"));
        assert_eq!(place.text("out.csv.partial").as_deref(), Some("part"));
        place.begun("out.csv", "none").abandon();
        drop(place.prepare("other.csv").unwrap());
        assert_eq!(place.names(), ["in.csv", "out.csv", "out.csv.partial"]);
        assert_eq!(place.prepare("out.csv").unwrap().commit().unwrap(), None);
        assert_eq!(place.text("out.csv").as_deref(), Some("old"));
    }

    #[test]
    fn links_are_followed_and_stay() {
        let place = Place::new();
        fs::create_dir(place.path("far")).unwrap();
        symlink("far/real.csv", place.path("middle")).unwrap();
        symlink("middle", place.path("out.csv")).unwrap();
        for text in ["first", "second"] {
            place.begun("out.csv", text).commit().unwrap();
            assert_eq!(place.text("far/real.csv").as_deref(), Some(text));
            assert!(fs::symlink_metadata(place.path("out.csv")).unwrap().is_symlink());
        }
    }

    #[test]
    fn the_input_is_refused_by_every_name() {
        let place = Place::new();
        symlink("in.csv", place.path("soft.csv")).unwrap();
        fs::hard_link(place.path("in.csv"), place.path("hard.csv")).unwrap();
        fs::hard_link(place.path("in.csv"), place.path("old.csv.partial")).unwrap();
        for name in ["in.csv", "soft.csv", "hard.csv", "../in.csv", "old.csv"] {
            let path = if name.starts_with("..") {
                fs::create_dir(place.path("deep")).unwrap();
                place.path("deep/../in.csv")
            } else {
                place.path(name)
            };
            let refused = Target::prepare(Some(&path), &place.path("in.csv"));
            assert!(matches!(refused, Err(OutputError::InputItself { .. })), "{name}");
        }
    }

    #[test]
    fn places_that_cannot_be_written_are_found_at_once() {
        let place = Place::new();
        assert!(matches!(place.prepare("."), Err(OutputError::Folder { .. })));
        assert!(matches!(place.prepare("none/out.csv"), Err(OutputError::Unwritable { .. })));
        assert!(matches!(place.prepare("in.csv/out.csv"), Err(OutputError::Unwritable { .. })));
        symlink("circle", place.path("circle")).unwrap();
        assert!(matches!(place.prepare("circle"), Err(OutputError::Unwritable { .. })));
    }

    #[test]
    fn devices_are_streams_and_a_full_one_is_named() {
        let place = Place::new();
        let full = Path::new("/dev/full");
        let mut target = Target::prepare(Some(full), &place.path("in.csv")).unwrap();
        assert!(target.is_stream());
        let error = target.begin().unwrap().write_all(b"x").unwrap_err();
        assert!(matches!(OutputError::writing("/dev/full", error), OutputError::Full { .. }));
        assert_eq!(target.commit().unwrap(), None);
        for path in [None, Some(Path::new("/dev/stdout"))] {
            assert_eq!(Target::prepare(path, &place.path("in.csv")).unwrap().name(), "standard output");
        }
    }
}
