//! From arguments to an input and the layers of its configuration.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::base::{Digest, WallTime};
use crate::cli::args::JobArgs;
use crate::cli::commands::Context;
use crate::cli::failure::Failure;
use crate::cli::settings::{ConfigFile, Invocation, Layers};
use crate::dataset::{format_of, parse_ranges, spool, sweep_spools};
use crate::model::{BadRows, Encoding, InputFormat, InputPath, InputSettings, Ragged, Selection};

/// The configuration that is named, or found beside the input, here or above.
pub(super) fn read_config(args: &JobArgs, context: &Context) -> Result<Option<ConfigFile>, Failure> {
    let named =
        args.config.clone().or_else(|| context.environment.variable("VERIFY_CONFIG").map(PathBuf::from));
    let is_stdin = args.input.as_os_str() == "-";
    let folder = args.input.parent().filter(|_| !is_stdin);
    let path = named.or_else(|| ConfigFile::discover(folder, context.environment.working_directory()));
    Ok(path.map(|path| ConfigFile::read(&path)).transpose()?)
}

/// Flags, variables and file.
pub(super) fn layers(args: &JobArgs, context: &Context, config: Option<ConfigFile>) -> Layers {
    Layers::new(args.flags.clone(), context.environment.of_the_program(), config)
}

/// What the arguments say besides keys. Standard input is read to its end first, into the folder `spool`.
pub(super) fn invocation(args: &JobArgs, spool: &Path, now: WallTime) -> Result<Invocation, Failure> {
    Ok(Invocation {
        input: input_settings(args, spool, now)?,
        columns: args.columns.clone(),
        key_env: args.key_env.clone(),
        price: args.price.clone(),
        result_field: args.result_field.clone(),
        order: args.order,
    })
}

/// The input that the arguments name, before its id column is known. Standard input is read to its end first, into
/// the state folder.
fn input_settings(args: &JobArgs, state: &Path, now: WallTime) -> Result<InputSettings, Failure> {
    let is_stdin = args.input.as_os_str() == "-";
    let format = format(args, is_stdin)?;
    let path = if is_stdin {
        InputPath::Stdin { spool: spooled(state, now)? }
    } else {
        InputPath::File(args.input.clone())
    };
    Ok(InputSettings {
        path,
        format,
        encoding: encoding(args.encoding.as_deref())?,
        bad_rows: if args.bad_rows == "keep" { BadRows::Keep } else { BadRows::Stop },
        ragged: if args.ragged == "pad" { Ragged::Pad } else { Ragged::Error },
        selection: selection(args)?,
        id_column: None,
        max_record: args.max_record,
        allow_empty: args.allow_empty,
    })
}

fn format(args: &JobArgs, is_stdin: bool) -> Result<InputFormat, Failure> {
    let delimiter = args.delimiter.as_deref().map(delimiter).transpose()?;
    let told = match args.input_format.as_deref() {
        Some("csv") => Some(InputFormat::Csv { delimiter: b',' }),
        Some("tsv") => Some(InputFormat::Csv { delimiter: b'\t' }),
        Some(_) => Some(InputFormat::Jsonl),
        None if is_stdin => Some(InputFormat::Jsonl),
        None => format_of(&args.input),
    };
    match (told, delimiter) {
        (Some(InputFormat::Csv { .. }), Some(delimiter)) => Ok(InputFormat::Csv { delimiter }),
        (Some(InputFormat::Jsonl), Some(_)) => {
            Err(Failure::usage("--delimiter is for CSV, and the input is JSONL"))
        }
        (Some(format), None) => Ok(format),
        (None, _) => Err(Failure::usage(format!(
            "the format of {} cannot be told from its name: give --input-format csv, tsv or jsonl",
            args.input.display()
        ))),
    }
}

fn delimiter(text: &str) -> Result<u8, Failure> {
    match text.as_bytes() {
        b"\\t" | b"tab" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n') => Ok(*byte),
        _ => {
            Err(Failure::usage(format!("--delimiter {text:?} must be one ASCII character, or \\t for a tab")))
        }
    }
}

fn encoding(label: Option<&str>) -> Result<Encoding, Failure> {
    let Some(label) = label else { return Ok(Encoding::Unicode) };
    match encoding_rs::Encoding::for_label(label.as_bytes()) {
        Some(encoding) if encoding == encoding_rs::UTF_8 => Ok(Encoding::Unicode),
        Some(encoding) => Ok(Encoding::Named(encoding)),
        None => Err(Failure::usage(format!(
            "--encoding {label} is no known encoding: use a WHATWG label such as windows-1252"
        ))),
    }
}

fn selection(args: &JobArgs) -> Result<Selection, Failure> {
    if let Some(count) = args.limit {
        return Ok(Selection::First(count));
    }
    if let Some(text) = &args.rows {
        let ranges = parse_ranges(text).map_err(|error| Failure::usage(format!("--rows: {error}")))?;
        return Ok(Selection::Ranges(ranges));
    }
    Ok(args.pick.map_or(Selection::All, |count| Selection::Pick { count, seed: args.pick_seed }))
}

/// What the names of copies of standard input begin with while they are made.
const INCOMING: &str = "spool-incoming-";

/// Standard input as a file of the state folder, named by its content: the same content is the same job.
fn spooled(state: &Path, now: WallTime) -> Result<PathBuf, Failure> {
    crate::store::prepare_folder(state)?;
    let failed = |what: &str, error: &std::io::Error| {
        Failure::unable(format!("cannot {what} standard input: {error}"))
    };
    sweep_spools(state, INCOMING);
    let incoming = state.join(format!("{INCOMING}{}-{}", std::process::id(), now.0));
    let (_, held) = spool(std::io::stdin().lock(), &incoming).map_err(|error| failed("spool", &error))?;
    let digest = digest_of(&incoming).map_err(|error| failed("read the spooled", &error))?;
    let path = state.join(format!("spool-{}", &digest.to_hex()[..32]));
    // The same content may be the input of a run that goes on: its file must not change under it. One that is not
    // what its name says was damaged.
    let is_there = digest_of(&path).is_ok_and(|there| there == digest);
    let placed = if is_there { std::fs::remove_file(&incoming) } else { std::fs::rename(&incoming, &path) };
    placed.map_err(|error| failed("keep", &error))?;
    drop(held);
    Ok(path)
}

fn digest_of(path: &Path) -> std::io::Result<Digest> {
    let mut file = File::open(path)?;
    let mut hasher = crate::base::DigestBuilder::new("spool");
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(hasher.finish());
        }
        hasher = hasher.field("", &buffer[..count]);
    }
}
