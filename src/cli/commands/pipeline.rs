//! What a run leaves for the pipeline that it is part of: `JUnit`'s XML, GitHub's annotations and job summary.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use crate::cli::args::RunArgs;
use crate::cli::commands::Context;
use crate::cli::failure::Failure;
use crate::model::{InputPath, InputRow, InputSettings, RowResult};
use crate::output::{Target, write_whole};
use crate::report::{Annotations, JUNIT_TAIL, Summary, junit_case, junit_head, markdown};
use crate::run::chain;

/// What is gathered while the rows are written.
#[derive(Debug)]
pub(super) struct Pipeline {
    /// The input's path, as people know it.
    input: String,
    /// The path for annotations; none for standard input.
    file: Option<String>,
    junit: Option<Junit>,
    annotations: Option<Annotations>,
}

/// Test cases go to a file of their own first: the head of the final one has their counts.
#[derive(Debug)]
struct Junit {
    path: PathBuf,
    cases: BufWriter<File>,
    failed: Option<std::io::Error>,
}

impl Pipeline {
    /// Looks whether its files can be written, before anything is sent.
    pub(super) fn new(args: &RunArgs, input: &InputSettings) -> Result<Self, Failure> {
        let junit = match &args.junit {
            None => None,
            Some(path) => {
                Target::prepare(Some(path), input.path.file())?.abandon();
                let cases = tempfile::tempfile()
                    .map_err(|error| Failure::unable(format!("cannot make a temporary file: {error}")))?;
                Some(Junit { path: path.clone(), cases: BufWriter::new(cases), failed: None })
            }
        };
        let file = match &input.path {
            InputPath::File(path) => Some(path.display().to_string()),
            InputPath::Stdin { .. } => None,
        };
        let annotations = args.github.then(Annotations::default);
        Ok(Self { input: input.path.display(), file, junit, annotations })
    }

    /// Whether rows are of interest to it.
    pub(super) fn sees_rows(&self) -> bool {
        self.junit.is_some() || self.annotations.is_some()
    }

    /// Takes a row in, in the order of the rows.
    pub(super) fn see(&mut self, row: &InputRow, result: &RowResult) {
        if let Some(junit) = &mut self.junit
            && junit.failed.is_none()
        {
            junit.failed = junit.cases.write_all(junit_case(&self.input, result).as_bytes()).err();
        }
        if let Some(annotations) = &mut self.annotations {
            annotations.add(self.file.as_deref(), row, result);
        }
    }

    /// Writes all of it.
    pub(super) fn finish(self, summary: &Summary, context: &Context) -> Result<(), Failure> {
        if let Some(junit) = self.junit {
            junit.finish(&self.input, summary)?;
        }
        let Some(annotations) = self.annotations else { return Ok(()) };
        // Where rows may go to standard output, commands do not: the runner reads them on standard error alike.
        for line in annotations.lines() {
            context.terminal.say(line);
        }
        match context.environment.variable("GITHUB_STEP_SUMMARY") {
            Some(path) => append(Path::new(&path), &markdown(summary)),
            None => Ok(()),
        }
    }
}

impl Junit {
    fn finish(self, input: &str, summary: &Summary) -> Result<(), Failure> {
        let unable = |error: &std::io::Error| {
            Failure::unable(format!("cannot write {}: {error}", self.path.display()))
        };
        if let Some(error) = &self.failed {
            return Err(unable(error));
        }
        let mut cases = self.cases.into_inner().map_err(|error| {
            Failure::unable(format!("cannot write {}: {}", self.path.display(), error.error()))
        })?;
        cases.rewind().map_err(|error| Failure::unable(format!("cannot read the test cases: {error}")))?;
        let head = junit_head(input, &summary.status, summary.wall);
        write_whole(&self.path, head.as_bytes().chain(cases).chain(JUNIT_TAIL.as_bytes()))
            .map_err(|error| Failure::unable(chain(&error)))
    }
}

fn append(path: &Path, text: &str) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    let written =
        options.append(true).create(true).open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written
        .map_err(|error| Failure::unable(format!("cannot write the job summary {}: {error}", path.display())))
}
