//! The token shared by a client and a server, and each one's proof of it.
//!
//! The proof is an HMAC of keying material exported from the TLS connection (RFC 5705), different on every connection.
//! So an eavesdropper, or a man in the middle with connections of his own to both, learns nothing usable, and
//! certificates need not be checked.

use crate::{CellError, ErrorKind};
use crosswind_host::program::TOKEN as VARIABLE;
use ring::hmac;

/// The shortest token in characters: a shorter one could be guessed from a proof.
const SHORTEST: usize = 20;

/// A TLS connection's keying material.
pub type Material = [u8; 32];

/// The proving end.
#[derive(Clone, Copy, Debug)]
pub enum End {
    Client,
    Server,
}

/// A shared secret.
pub struct Token(hmac::Key);

impl Token {
    /// From the environment.
    pub fn from_environment() -> Result<Self, CellError> {
        let text = std::env::var(VARIABLE).unwrap_or_default();
        Self::new(text.trim())
    }

    fn new(text: &str) -> Result<Self, CellError> {
        if text.len() >= SHORTEST {
            return Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes())));
        }
        let problem = if text.is_empty() { "is not set" } else { "is too short" };
        Err(CellError::new(ErrorKind::Network, format!("the token ({VARIABLE}) {problem}"))
            .hint("crosswind serve prints a token when it starts; give the same one to both machines"))
    }

    /// The proof of `end` on a connection.
    pub fn prove(&self, end: End, material: &Material) -> Vec<u8> {
        hmac::sign(&self.0, &said(end, material)).as_ref().to_vec()
    }

    /// Identifies a client's further connections, once it has proven the token on its first.
    pub fn group(&self, material: &Material) -> Vec<u8> {
        hmac::sign(&self.0, &[b"crosswind group", material.as_slice()].concat()).as_ref().to_vec()
    }

    /// Whether a proof is right. It takes as long for every wrong one.
    pub fn is_proven(&self, end: End, material: &Material, proof: &[u8]) -> bool {
        hmac::verify(&self.0, &said(end, material), proof).is_ok()
    }
}

fn said(end: End, material: &Material) -> Vec<u8> {
    let name: &[u8] = match end {
        End::Client => b"crosswind client",
        End::Server => b"crosswind server",
    };
    [name, material].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_of_one_token_one_connection_and_one_end() {
        let token = Token::new("a token of many characters").unwrap();
        let (here, elsewhere) = ([1; 32], [2; 32]);
        let proof = token.prove(End::Client, &here);
        assert!(token.is_proven(End::Client, &here, &proof));
        assert!(!token.is_proven(End::Server, &here, &proof));
        assert!(!token.is_proven(End::Client, &elsewhere, &proof));
        assert!(!Token::new("another token of many characters").unwrap().is_proven(End::Client, &here, &proof));
    }

    #[test]
    fn a_short_token_is_refused() {
        let error = |text| Token::new(text).err().unwrap().message;
        assert_eq!(error(""), "the token (CROSSWIND_TOKEN) is not set");
        assert_eq!(error("nineteen characters"), "the token (CROSSWIND_TOKEN) is too short");
    }
}
