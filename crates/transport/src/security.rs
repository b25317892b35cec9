//! Certificates, keys and TLS settings: generated at run time, the same for every secure transport of a cell.

use crate::error::{Outcome, TransportError};
use crate::signatures::{Handshakes, Issuer};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, SerialNumber};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, DigitallySignedStruct, KeyLog, RootCertStore, ServerConfig, SignatureScheme};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The limit of early data in TLS over TCP. In QUIC it is always the largest value (RFC 9001, section 4.6.1).
const EARLY_DATA_BYTES: u32 = 16_384;

/// For certificates of constant size; it has the usual size.
const SERIAL_NUMBER: [u8; 20] = [1; 20];

/// What a secure connection resumes of an earlier one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Resumption {
    /// Nothing: a full handshake.
    #[default]
    #[serde(rename = "none")]
    None,
    /// The session: a handshake without certificates (RFC 8446, section 2.2).
    #[serde(rename = "session")]
    Session,
    /// The session, and data in the first flight (section 2.3).
    #[serde(rename = "0-rtt")]
    EarlyData,
}

/// A server's certificate, and a client's trust.
#[derive(Debug)]
pub struct Security {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    certificate_pem: String,
    key_pem: String,
    sizes: Sizes,
    trust: Trust,
    server_name: ServerName<'static>,
    key_log: Option<Arc<dyn KeyLog>>,
    clients: Mutex<Clients>,
}

/// Clients' settings, by protocols and resumption. They are kept because they hold the sessions.
type Clients = HashMap<(Vec<Vec<u8>>, Resumption), Arc<ClientConfig>>;

/// Sizes of certificates and handshakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// As they come: a signature may take a byte more or less than another.
    AsTheyCome,
    /// The same with every key and every connection, at the cost of more signatures.
    Constant,
}

/// A client's trust.
#[derive(Clone, Debug, Default)]
pub enum Trust {
    /// Its own server's certificate, and nothing else.
    #[default]
    Own,
    /// These roots, PEM.
    Roots(String),
    /// Any certificate: for other people's servers, where the certificate does not matter.
    Anything,
}

fn failed(what: &'static str) -> impl Fn(&dyn std::fmt::Display) -> TransportError {
    move |cause| TransportError::with(what, Outcome::Error, cause.to_string())
}

impl Security {
    /// A new ECDSA P-256 certificate for `localhost` and both loopback addresses, valid from an hour ago for 13 days.
    ///
    /// # Errors
    /// When no random key can be made.
    pub fn new() -> Result<Self, TransportError> {
        Self::of_addresses(&[], Sizes::AsTheyCome)
    }

    /// The same, with a certificate also valid for some `addresses`: third-party clients connect to an address, not a
    /// name.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_addresses(addresses: &[IpAddr], sizes: Sizes) -> Result<Self, TransportError> {
        let now = time::OffsetDateTime::now_utc();
        // Browsers accept no self-signed certificate beyond 14 days (W3C WebTransport, custom certificate
        // requirements).
        Self::valid(now - time::Duration::hours(1), now + time::Duration::days(13), addresses, sizes)
    }

    /// The same certificate, valid at another time, and for some addresses beside.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn valid(
        from: time::OffsetDateTime,
        to: time::OffsetDateTime,
        addresses: &[IpAddr],
        sizes: Sizes,
    ) -> Result<Self, TransportError> {
        let failed = failed("cannot make a certificate");
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(|e| failed(&e))?;
        let names = ["localhost", "127.0.0.1", "::1"].map(String::from).into_iter();
        let names: Vec<String> = names.chain(addresses.iter().map(IpAddr::to_string)).collect();
        let mut params = CertificateParams::new(names).map_err(|e| failed(&e))?;
        params.not_before = from;
        params.not_after = to;
        let certificate = match sizes {
            Sizes::AsTheyCome => params.self_signed(&key),
            Sizes::Constant => {
                params.serial_number = Some(SerialNumber::from_slice(&SERIAL_NUMBER));
                params.self_signed(&Issuer(&key))
            }
        };
        let certificate = certificate.map_err(|e| failed(&e))?;
        let key_der = PrivateKeyDer::try_from(key.serialize_der()).map_err(|e| failed(&e))?;
        Ok(Self {
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
            certificate: certificate.into(),
            key: key_der,
            sizes,
            trust: Trust::Own,
            server_name: ServerName::try_from("localhost").map_err(|e| failed(&e))?,
            key_log: None,
            clients: Mutex::default(),
        })
    }

    /// With another server name for clients, and other trusted certificates.
    ///
    /// # Errors
    /// When `name` is not a valid name.
    pub fn expecting(mut self, name: &str, trust: Trust) -> Result<Self, TransportError> {
        self.server_name =
            ServerName::try_from(name.to_owned()).map_err(|e| failed("cannot use the server's name")(&e))?;
        self.trust = trust;
        Ok(self)
    }

    /// With a `log` for session keys, to decrypt captures.
    #[must_use]
    pub fn with_key_log(mut self, log: Arc<dyn KeyLog>) -> Self {
        self.key_log = Some(log);
        self
    }

    /// The server's certificate, PEM.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The server certificate's key, PEM (PKCS #8).
    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }

    /// The server's certificate, DER.
    pub const fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// The certificate's hash in hexadecimal, accepted by a browser in place of a chain (`serverCertificateHashes`).
    pub fn certificate_sha256(&self) -> String {
        hex(::ring::digest::digest(&::ring::digest::SHA256, &self.certificate).as_ref())
    }

    /// The server name clients expect.
    pub const fn server_name(&self) -> &ServerName<'static> {
        &self.server_name
    }

    /// A server's settings for `protocols` (ALPN). `quic`: for QUIC.
    ///
    /// # Errors
    /// When the key is invalid, which [`Self::new`] rules out.
    pub fn server(
        &self,
        protocols: &[&[u8]],
        resumption: Resumption,
        quic: bool,
    ) -> Result<ServerConfig, TransportError> {
        let failed = failed("cannot use the certificate");
        let provider = provider();
        let mut key = provider.key_provider.load_private_key(self.key.clone_key()).map_err(|e| failed(&e))?;
        if self.sizes == Sizes::Constant {
            key = Arc::new(Handshakes(key));
        }
        let certified = CertifiedKey::new(vec![self.certificate.clone()], key);
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|e| failed(&e))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        config.alpn_protocols = owned(protocols);
        if resumption == Resumption::EarlyData {
            config.max_early_data_size = if quic { u32::MAX } else { EARLY_DATA_BYTES };
        }
        if let Some(log) = &self.key_log {
            config.key_log = Arc::clone(log);
        }
        Ok(config)
    }

    /// A client's settings for `protocols` (ALPN): the same object each time, so its sessions can be resumed.
    ///
    /// # Errors
    /// When the trusted roots are not certificates.
    pub fn client(&self, protocols: &[&[u8]], resumption: Resumption) -> Result<Arc<ClientConfig>, TransportError> {
        let key = (owned(protocols), resumption);
        let Ok(mut clients) = self.clients.lock() else { return Ok(Arc::new(self.new_client(protocols, resumption)?)) };
        if let Some(config) = clients.get(&key) {
            return Ok(Arc::clone(config));
        }
        let config = Arc::new(self.new_client(protocols, resumption)?);
        clients.insert(key, Arc::clone(&config));
        Ok(config)
    }

    fn new_client(&self, protocols: &[&[u8]], resumption: Resumption) -> Result<ClientConfig, TransportError> {
        let failed = failed("cannot trust a certificate");
        let mut roots = RootCertStore::empty();
        match &self.trust {
            Trust::Own => roots.add(self.certificate.clone()).map_err(|e| failed(&e))?,
            Trust::Roots(pem) => {
                for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                    roots.add(certificate.map_err(|e| failed(&e))?).map_err(|e| failed(&e))?;
                }
            }
            Trust::Anything => {}
        }
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|e| failed(&e))?;
        let mut config = if matches!(self.trust, Trust::Anything) {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate)).with_no_client_auth()
        } else {
            let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
                .build()
                .map_err(|e| failed(&e))?;
            builder.with_webpki_verifier(verifier).with_no_client_auth()
        };
        config.alpn_protocols = owned(protocols);
        if resumption == Resumption::None {
            config.resumption = rustls::client::Resumption::disabled();
        }
        config.enable_early_data = resumption == Resumption::EarlyData;
        if let Some(log) = &self.key_log {
            config.key_log = Arc::clone(log);
        }
        Ok(config)
    }
}

/// Writes session keys into a file (NSS key log format), for Wireshark, and also to `SSLKEYLOGFILE`, as browsers do.
#[derive(Debug)]
pub struct KeyLogFile {
    files: Mutex<Vec<File>>,
    environment: Option<rustls::KeyLogFile>,
}

impl KeyLogFile {
    /// Creates the file; `also`: an existing one that gets the same.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(path: &Path, also: Option<&Path>) -> io::Result<Self> {
        // The keys decrypt the captures.
        let own = File::options().create(true).write(true).truncate(true).mode(0o600).open(path)?;
        let also = also.map(append).transpose()?;
        let files = Mutex::new(also.into_iter().chain([own]).collect());
        Ok(Self { files, environment: Some(rustls::KeyLogFile::new()) })
    }

    /// Writes into an existing file, and nowhere else.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn private(path: &Path) -> io::Result<Self> {
        Ok(Self { files: Mutex::new(vec![append(path)?]), environment: None })
    }
}

impl KeyLog for KeyLogFile {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        if let Ok(mut files) = self.files.lock() {
            for file in files.iter_mut() {
                // Without its key a connection cannot be decrypted; the measurement itself is not affected.
                let _ = writeln!(file, "{label} {} {}", hex(client_random), hex(secret));
            }
        }
        if let Some(environment) = &self.environment {
            environment.log(label, client_random, secret);
        }
    }
}

fn append(path: &Path) -> io::Result<File> {
    File::options().append(true).open(path)
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 0xf])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn owned(protocols: &[&[u8]]) -> Vec<Vec<u8>> {
    protocols.iter().map(|protocol| protocol.to_vec()).collect()
}

/// A TLS failure's outcome: certificate or protocol.
pub(crate) fn outcome(error: &rustls::Error) -> Outcome {
    match error {
        rustls::Error::InvalidCertificate(_)
        | rustls::Error::NoCertificatesPresented
        | rustls::Error::AlertReceived(
            rustls::AlertDescription::BadCertificate
            | rustls::AlertDescription::CertificateExpired
            | rustls::AlertDescription::CertificateUnknown
            | rustls::AlertDescription::UnknownCA
            // A certificate with the same name and another key fails at the signature.
            | rustls::AlertDescription::DecryptError,
        ) => Outcome::Certificate,
        _ => Outcome::Protocol,
    }
}

#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}
