//! The process's cryptography.

/// Makes ring the cryptography of every TLS connection of this process. To be called once, before the first
/// [`Http`](crate::transport::Http); calling it again changes nothing.
pub fn install_tls() {
    // The only error is that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Whether there is a provider.
pub(super) fn is_installed() -> bool {
    rustls::crypto::CryptoProvider::get_default().is_some()
}
