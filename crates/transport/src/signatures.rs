//! Signatures of constant size.
//!
//! An ECDSA signature is two integers in DER, each shorter if it begins with zeros, so P-256 takes 70 to 72 bytes and
//! seldom less: packet sizes would vary with every key and every handshake. Here a message is signed until the
//! signature has the most frequent size. Where computing takes no time, as in virtual time, that changes nothing else.

use rcgen::{KeyPair, PublicKeyData};
use rustls::sign::{Signer, SigningKey};
use rustls::{SignatureAlgorithm, SignatureScheme};
use std::sync::Arc;

/// The size of half of all signatures with ECDSA P-256.
pub const SIGNATURE_BYTES: usize = 71;

fn of_one_size<E>(mut sign: impl FnMut() -> Result<Vec<u8>, E>) -> Result<Vec<u8>, E> {
    loop {
        let signature = sign()?;
        if signature.len() == SIGNATURE_BYTES {
            return Ok(signature);
        }
    }
}

/// For certificates.
pub struct Issuer<'a>(pub &'a KeyPair);

impl PublicKeyData for Issuer<'_> {
    fn der_bytes(&self) -> &[u8] {
        self.0.der_bytes()
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        self.0.algorithm()
    }
}

impl rcgen::SigningKey for Issuer<'_> {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        of_one_size(|| self.0.sign(message))
    }
}

#[derive(Debug)]
pub struct Handshakes(pub Arc<dyn SigningKey>);

impl SigningKey for Handshakes {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        Some(Box::new(OfOneSize(self.0.choose_scheme(offered)?)))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.0.algorithm()
    }
}

#[derive(Debug)]
struct OfOneSize(Box<dyn Signer>);

impl Signer for OfOneSize {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rustls::Error> {
        of_one_size(|| self.0.sign(message))
    }

    fn scheme(&self) -> SignatureScheme {
        self.0.scheme()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::SigningKey as _;

    #[test]
    fn signatures_have_the_same_size_with_every_key() {
        for _ in 0..8 {
            let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
            let sizes: Vec<usize> = (0..8).map(|_| Issuer(&key).sign(b"message").unwrap().len()).collect();
            assert_eq!(sizes, [SIGNATURE_BYTES; 8]);
        }
    }
}
