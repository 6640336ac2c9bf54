//! BLAKE3 digests of structured content.

use std::fmt;

/// 32 bytes of BLAKE3.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `bytes` as they stand.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// A digest read back from a store; `None` if it is not 32 bytes long.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// All 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first 16 bytes: what the store's index of answers keeps.
    pub fn short(&self) -> [u8; 16] {
        let mut short = [0; 16];
        short.copy_from_slice(&self.0[..16]);
        short
    }

    /// 64 hexadecimal digits.
    pub fn to_hex(self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex()[..16])
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

/// Builds a digest of named fields. Each is length-prefixed, so that no two different lists of fields feed the
/// same bytes. A builder is cheap to clone: a prefix shared by many digests is fed once.
#[derive(Debug, Clone, Default)]
pub struct DigestBuilder {
    hasher: blake3::Hasher,
}

impl DigestBuilder {
    /// A builder for one kind of thing; `domain` keeps digests of different kinds apart.
    pub fn new(domain: &str) -> Self {
        let mut builder = Self { hasher: blake3::Hasher::new() };
        builder.push(domain.as_bytes());
        builder
    }

    fn push(&mut self, bytes: &[u8]) {
        self.hasher.update(&(bytes.len() as u64).to_le_bytes());
        self.hasher.update(bytes);
    }

    /// Adds a field with a value.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.push(name.as_bytes());
        self.push(value.as_ref());
        self
    }

    /// Adds a field that may be absent; an absent one differs from an empty one.
    #[must_use]
    pub fn optional(self, name: &str, value: Option<impl AsRef<[u8]>>) -> Self {
        match value {
            Some(value) => self.field(name, "1").field("", value),
            None => self.field(name, "0"),
        }
    }

    /// Adds a number.
    #[must_use]
    pub fn number(self, name: &str, value: u64) -> Self {
        self.field(name, value.to_le_bytes())
    }

    /// The digest of all fields so far.
    pub fn finish(&self) -> Digest {
        Digest(*self.hasher.finalize().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_run_together() {
        let one = DigestBuilder::new("t").field("a", "bc").finish();
        let two = DigestBuilder::new("t").field("ab", "c").finish();
        assert_ne!(one, two);
        let absent = DigestBuilder::new("t").optional("a", None::<&str>).finish();
        assert_ne!(absent, DigestBuilder::new("t").optional("a", Some("")).finish());
        assert_eq!(Digest::from_bytes(one.as_bytes()), Some(one));
    }
}
