//! From the bytes of a compressed file to those of its content.

use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::dataset::encoding::TextFault;

/// Puts a decompressor behind `raw` where the file's name ends in `.gz` or `.zst`. Checksums are compared, and
/// memory is bounded: 32 KiB for gzip, at most 128 MiB for Zstandard, as far as the file asks for it.
pub(super) fn unpacked(file: &Path, raw: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let extension = file.extension().and_then(|text| text.to_str()).map(str::to_ascii_lowercase);
    Ok(match extension.as_deref() {
        Some("gz") => Box::new(Unpacking { inner: MultiGzDecoder::new(raw), with: "gzip" }),
        Some("zst") => Box::new(Unpacking { inner: zstd::Decoder::new(raw)?, with: "zstd" }),
        _ => raw,
    })
}

/// A decompressor whose complaints are told from those of the disk.
struct Unpacking<R> {
    inner: R,
    with: &'static str,
}

impl<R: Read> Read for Unpacking<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.inner.read(out).map_err(|error| {
            if error.raw_os_error().is_some() || error.kind() == io::ErrorKind::Interrupted {
                return error;
            }
            let what = if error.kind() == io::ErrorKind::UnexpectedEof { "is cut off" } else { "is damaged" };
            io::Error::new(io::ErrorKind::InvalidData, TextFault::Damaged { with: self.with, what })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gz(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn zst(text: &str) -> Vec<u8> {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn read(name: &str, bytes: Vec<u8>) -> Result<String, String> {
        let mut text = String::new();
        let mut reader = unpacked(Path::new(name), Box::new(io::Cursor::new(bytes))).unwrap();
        reader.read_to_string(&mut text).map(|_| text).map_err(|error| error.to_string())
    }

    #[test]
    fn members_and_frames_follow_one_another() {
        assert_eq!(read("a.jsonl.gz", [gz("one"), gz("two")].concat()).unwrap(), "onetwo");
        assert_eq!(read("a.jsonl.ZST", [zst("one"), zst("two")].concat()).unwrap(), "onetwo");
        assert_eq!(read("a.jsonl", b"plain".to_vec()).unwrap(), "plain");
    }

    #[test]
    fn every_cut_and_every_flipped_bit_of_the_content_is_found() {
        for (name, whole) in [("a.gz", gz("some text, some text")), ("a.zst", zst("some text, some text"))] {
            for end in 0..whole.len() {
                // Zstandard takes nothing at all for no frames.
                if end > 0 || name == "a.gz" {
                    let error = read(name, whole[..end].to_vec()).unwrap_err();
                    assert!(error.contains("is cut off"), "{name} {end}: {error}");
                }
            }
            // The checksum, which follows the data.
            let at = whole.len() - if name == "a.gz" { 6 } else { 2 };
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            assert!(read(name, flipped).unwrap_err().contains("is damaged"), "{name}");
            assert!(read(name, b"no archive at all".to_vec()).is_err());
        }
    }
}
