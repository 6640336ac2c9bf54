//! A path in the store's JSON: its text, or its bytes where it has none.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The two forms. A name on Unix is any bytes.
#[derive(Deserialize)]
#[serde(untagged)]
enum Form {
    Text(PathBuf),
    Bytes(Vec<u8>),
}

pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => text.serialize(to),
        None => path.as_os_str().as_bytes().serialize(to),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    Ok(match Form::deserialize(from)? {
        Form::Text(path) => path,
        Form::Bytes(bytes) => PathBuf::from(OsString::from_vec(bytes)),
    })
}
