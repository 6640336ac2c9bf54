//! The process's cryptography.

use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;

/// Makes ring the cryptography of every TLS connection of this process. To be called once, before the first
/// [`Http`](crate::transport::Http); calling it again changes nothing.
pub fn install_tls() {
    // The only error is that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// What TLS connections are made with; `None` where no provider is installed.
pub(super) fn config() -> Option<ClientConfig> {
    let provider = CryptoProvider::get_default()?;
    let roots = Arc::new(Roots { provider: Arc::clone(provider), verifier: OnceLock::new() });
    let config = ClientConfig::builder().dangerous().with_custom_certificate_verifier(roots);
    Some(config.with_no_client_auth())
}

/// The system's verifier, made when a certificate is first to be verified: it reads some hundred files, which an
/// endpoint on this machine, or in a cluster, never needs.
#[derive(Debug)]
struct Roots {
    provider: Arc<CryptoProvider>,
    verifier: OnceLock<Result<Verifier, Error>>,
}

impl Roots {
    fn verifier(&self) -> Result<&Verifier, Error> {
        let made = self.verifier.get_or_init(|| Verifier::new(Arc::clone(&self.provider)));
        made.as_ref().map_err(Clone::clone)
    }
}

impl ServerCertVerifier for Roots {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verifier()?.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier()?.verify_tls12_signature(message, cert, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier()?.verify_tls13_signature(message, cert, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
