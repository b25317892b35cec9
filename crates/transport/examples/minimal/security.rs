//! A certificate in two files, and TLS 1.3 with it.

use crate::Result;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::fs;
use std::path::Path;
use std::sync::Arc;

pub(crate) const NAME: &str = "localhost";

/// The server's certificate and the client's trust.
pub(crate) struct Security {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Security {
    pub(crate) fn create(directory: &Path) -> Result<()> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let certificate = rcgen::CertificateParams::new([NAME.to_owned()])?.self_signed(&key)?;
        fs::write(directory.join("certificate.der"), certificate.der())?;
        fs::write(directory.join("key.der"), key.serialize_der())?;
        Ok(())
    }

    pub(crate) fn read(directory: &Path) -> Result<Self> {
        let key = PrivatePkcs8KeyDer::from(fs::read(directory.join("key.der"))?);
        Ok(Self { certificate: fs::read(directory.join("certificate.der"))?.into(), key: key.into() })
    }

    pub(crate) fn server(&self, protocol: &[u8]) -> Result<ServerConfig> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], self.key.clone_key())?;
        config.alpn_protocols = vec![protocol.to_vec()];
        Ok(config)
    }

    pub(crate) fn client(&self, protocol: &[u8]) -> Result<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone())?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        config.resumption = Resumption::disabled();
        Ok(config)
    }

    pub(crate) fn name() -> Result<ServerName<'static>> {
        Ok(ServerName::try_from(NAME)?)
    }
}
