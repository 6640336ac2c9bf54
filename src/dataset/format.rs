//! Which format a file has, by its name.

use std::path::Path;

use crate::model::InputFormat;

/// The format that the extension names: `.csv`, `.tsv`, `.jsonl` or `.ndjson`, in any case, each also before `.gz`
/// or `.zst`. `None` for any other.
pub fn format_of(path: &Path) -> Option<InputFormat> {
    let extension =
        |path: &Path| path.extension().and_then(|text| text.to_str()).map(str::to_ascii_lowercase);
    let mut last = extension(path)?;
    if last == "gz" || last == "zst" {
        last = extension(Path::new(path.file_stem()?))?;
    }
    match last.as_str() {
        "csv" => Some(InputFormat::Csv { delimiter: b',' }),
        "tsv" => Some(InputFormat::Csv { delimiter: b'\t' }),
        "jsonl" | "ndjson" => Some(InputFormat::Jsonl),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_formats_by_extension() {
        let comma = Some(InputFormat::Csv { delimiter: b',' });
        for (name, format) in [
            ("a.csv", comma),
            ("dir.jsonl/A.CSV", comma),
            ("a.tsv", Some(InputFormat::Csv { delimiter: b'\t' })),
            ("a.b.jsonl", Some(InputFormat::Jsonl)),
            ("a.ndjson.zst", Some(InputFormat::Jsonl)),
            ("a.csv.gz", comma),
            ("a.gz", None),
            ("a.txt", None),
            ("csv", None),
        ] {
            assert_eq!(format_of(Path::new(name)), format, "{name}");
        }
    }
}
