//! A certificate for other people's programs, with its own authority: made at run time, as files.

use crate::error::{Outcome, TransportError};
use crate::signatures::Issuer;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, SerialNumber,
};

/// For certificates with a constant size.
const SERIAL_NUMBERS: [[u8; 20]; 2] = [[1; 20], [2; 20]];

/// A certificate, as PEM.
#[derive(Clone, Debug)]
pub struct Certified {
    /// The certificate.
    pub certificate_pem: String,
    /// Its key (PKCS #8).
    pub key_pem: String,
    /// Its authority's certificate.
    pub authority_pem: String,
}

/// A new ECDSA P-256 certificate for some names and addresses, a server's or a client's, valid from an hour ago for 13
/// days: as long as browsers accept.
///
/// # Errors
/// When no random key can be made, or a name is none.
pub fn certify(names: Vec<String>) -> Result<Certified, TransportError> {
    make(names).map_err(|cause| TransportError::with("cannot make a certificate", Outcome::Error, cause.to_string()))
}

fn make(names: Vec<String>) -> Result<Certified, rcgen::Error> {
    let [authority_key, key] =
        [KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?, KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?];
    let mut authority = params(Vec::new(), "Crosswind", SERIAL_NUMBERS[0])?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority_pem = authority.self_signed(&Issuer(&authority_key))?.pem();
    let common_name = names.first().cloned().unwrap_or_default();
    let mut own = params(names, &common_name, SERIAL_NUMBERS[1])?;
    own.use_authority_key_identifier_extension = true;
    own.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    own.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let issuer = rcgen::Issuer::new(authority, Issuer(&authority_key));
    let certificate_pem = own.signed_by(&key, &issuer)?.pem();
    Ok(Certified { certificate_pem, key_pem: key.serialize_pem(), authority_pem })
}

fn params(names: Vec<String>, common_name: &str, serial_number: [u8; 20]) -> Result<CertificateParams, rcgen::Error> {
    let now = time::OffsetDateTime::now_utc();
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.serial_number = Some(SerialNumber::from_slice(&serial_number));
    params.not_before = now - time::Duration::hours(1);
    params.not_after = now + time::Duration::days(13);
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::RootCertStore;
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier;
    use rustls::crypto::ring::default_provider;
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use std::sync::Arc;

    #[test]
    fn whoever_trusts_the_authority_trusts_the_certificate_for_its_names_alone() {
        let made = certify(["server", "198.18.0.2", "2001:2::2"].map(str::to_owned).into()).unwrap();
        let read = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(read(&made.authority_pem)).unwrap();
        let provider = Arc::new(default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        let is_trusted = |name: &'static str| {
            let name = ServerName::try_from(name).unwrap();
            verifier.verify_server_cert(&read(&made.certificate_pem), &[], &name, &[], UnixTime::now()).is_ok()
        };
        assert_eq!(["server", "198.18.0.2", "2001:2::2", "client"].map(is_trusted), [true, true, true, false]);
        assert!(made.key_pem.starts_with("-----BEGIN PRIVATE KEY-----"));
    }
}
