//! A peer's job, on its standard input: one line with one JSON object.

use crate::programs::Role;
use crosswind_transport::security::Security;
use serde::Serialize;
use serde_json::{Map, Value};
use std::net::SocketAddr;
use std::path::Path;

const SCHEMA: &str = "crosswind.peer/1";

/// A peer's job.
#[derive(Debug, Serialize)]
pub struct Job<'a> {
    schema: &'static str,
    role: Role,
    address: String,
    port: u16,
    workload: &'a Map<String, Value>,
    certificate_pem: Option<&'a str>,
    certificate_sha256: Option<String>,
    private_key_pem: Option<&'a str>,
    virtual_time: bool,
    directory: Option<&'a Path>,
}

impl<'a> Job<'a> {
    /// The job of the peer at this end. `security`: for a secure transport. `directory`: its own.
    pub fn new(
        role: Role,
        server: SocketAddr,
        workload: &'a Map<String, Value>,
        security: Option<&'a Security>,
        virtual_time: bool,
        directory: Option<&'a Path>,
    ) -> Self {
        Self {
            schema: SCHEMA,
            role,
            address: server.ip().to_string(),
            port: server.port(),
            workload,
            certificate_pem: security.map(Security::certificate_pem),
            certificate_sha256: security.map(Security::certificate_sha256),
            private_key_pem: security.filter(|_| role == Role::Server).map(Security::key_pem),
            virtual_time,
            directory,
        }
    }

    /// As a line of JSON.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::Role;
    use crosswind_transport::security::Sizes;
    use serde_json::json;

    #[test]
    fn a_job_is_one_line_and_only_the_server_has_the_key() {
        let security = Security::of_addresses(&["198.18.0.2".parse().unwrap()], Sizes::AsTheyCome).unwrap();
        let workload = json!({"kind": "echo", "transport": "wss"});
        let workload = workload.as_object().unwrap();
        let read = |role| {
            let server = "198.18.0.2:4433".parse().unwrap();
            let line = Job::new(role, server, workload, Some(&security), false, Some(Path::new("/a/b"))).to_line();
            assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
            serde_json::from_slice::<Value>(&line).unwrap()
        };
        let (client, server) = (read(Role::Client), read(Role::Server));
        assert_eq!(
            (&client["schema"], &client["role"], &client["address"], &client["port"], &client["directory"]),
            (&json!("crosswind.peer/1"), &json!("client"), &json!("198.18.0.2"), &json!(4433), &json!("/a/b"))
        );
        assert_eq!(client["private_key_pem"], Value::Null);
        assert!(server["private_key_pem"].as_str().unwrap().starts_with("-----BEGIN PRIVATE KEY-----"));
        assert_eq!(client["certificate_sha256"].as_str().unwrap().len(), 64);
        assert_eq!(client["workload"], json!({"kind": "echo", "transport": "wss"}));
    }
}
