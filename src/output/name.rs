//! Names of outputs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::model::OutputFormat;

/// The output of an input that is given no other: `a.csv` becomes `a.verified.csv`, `a.jsonl.gz`
/// `a.verified.jsonl`, `a` `a.verified`, in the same folder.
pub fn default_output(input: &Path) -> PathBuf {
    let path = without_compression(input);
    let mut name = OsString::from(path.file_stem().unwrap_or_default());
    name.push(".verified");
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    input.with_file_name(name)
}

/// The format that the extension names, as for an input. `None` for any other: the input's format is meant.
fn output_format_of(path: &Path) -> Option<OutputFormat> {
    let path = without_compression(path);
    match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "csv" => Some(OutputFormat::Csv { delimiter: b',' }),
        "tsv" => Some(OutputFormat::Csv { delimiter: b'\t' }),
        "jsonl" | "ndjson" => Some(OutputFormat::Jsonl),
        _ => None,
    }
}

/// The format of an output at `path`, `None` for standard output, of an input whose own format is `same`: what the
/// extension names, else the input's. The output of a CSV keeps its delimiter, unless the name says tabs.
pub fn output_format_for(path: Option<&Path>, same: OutputFormat) -> OutputFormat {
    match (path.and_then(output_format_of), same) {
        (None | Some(OutputFormat::Csv { delimiter: b',' }), OutputFormat::Csv { .. }) | (None, _) => same,
        (Some(named), _) => named,
    }
}

/// Whether the name ends as that of a compressed file.
fn is_compressed(path: &Path) -> bool {
    let extension = path.extension().and_then(|text| text.to_str()).unwrap_or_default();
    extension.eq_ignore_ascii_case("gz") || extension.eq_ignore_ascii_case("zst")
}

fn without_compression(path: &Path) -> PathBuf {
    if is_compressed(path) { path.with_extension("") } else { path.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_an_output_after_its_input() {
        for (input, output) in [
            ("a.csv", "a.verified.csv"),
            ("dir/a.jsonl.gz", "dir/a.verified.jsonl"),
            ("/x/a.b.TSV", "/x/a.b.verified.TSV"),
            ("a.txt", "a.verified.txt"),
            ("a", "a.verified"),
        ] {
            assert_eq!(default_output(Path::new(input)), Path::new(output));
        }
    }

    #[test]
    fn names_a_format_by_extension() {
        assert_eq!(output_format_of(Path::new("a.CSV")), Some(OutputFormat::Csv { delimiter: b',' }));
        assert_eq!(output_format_of(Path::new("a.tsv")), Some(OutputFormat::Csv { delimiter: b'\t' }));
        assert_eq!(output_format_of(Path::new("a.ndjson.zst")), Some(OutputFormat::Jsonl));
        assert_eq!(output_format_of(Path::new("a.txt")), None);
    }
}
