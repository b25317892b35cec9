//! Placeholders for addresses, ports and files in texts for a user's programs.

use super::returned_files::{OUTPUT_WORD, ReturnedFiles};
use super::{PerEnd, Role};
use crate::WorkloadError;
use crate::context::Context;
use crosswind_host::{HostError, PrivateFiles, User};
use crosswind_transport::authority;

/// Named ports follow this one, if there is no other port.
const PORT: u16 = 8000;
const NAMED_PORT: &str = "{port:";
/// Files: a certificate, its key, and its authority.
const SECURITY_FILES: [&str; 3] = ["{cert}", "{key}", "{ca}"];

/// Placeholders and their meanings.
type Words = Vec<(String, String)>;

/// Every placeholder for a cell's programs, with its meaning.
pub struct Placeholders {
    words: Words,
    /// Each end's private files.
    own: PerEnd<Words>,
    returned: ReturnedFiles,
    /// They go with it.
    _files: Vec<PrivateFiles>,
}

impl Placeholders {
    /// Those in some texts. `port`: the server's. `users`: as whom the programs run.
    pub fn new(
        context: &Context<'_>,
        texts: &[&String],
        port: Option<u16>,
        users: &PerEnd<Option<User>>,
    ) -> Result<Self, WorkloadError> {
        let returned = ReturnedFiles::new(context, texts.iter().copied(), users)?;
        let hosts = context.hosts;
        let (server, client) = (hosts.server_address.to_string(), hosts.client_address.to_string());
        let mut words: Words =
            [("{server}", &server), ("{address}", &server), ("{client}", &client), (OUTPUT_WORD, &returned.place())]
                .map(|(word, meaning)| (word.to_owned(), meaning.clone()))
                .into();
        words.extend(port.map(|port| ("{port}".to_owned(), port.to_string())));
        let first = port.unwrap_or(PORT);
        for (name, offset) in named_ports(texts).into_iter().zip(1_u16..) {
            let Some(own) = first.checked_add(offset) else {
                let cause = format!("the ports after {first} do not suffice");
                return Err(HostError::unsupported(format!("cannot fill in {name}"), cause)
                    .hint("take a lower port")
                    .into());
            };
            words.push((name, own.to_string()));
        }
        let wants_files = texts.iter().any(|text| SECURITY_FILES.iter().any(|word| text.contains(word)));
        let (own, files) = if wants_files { security_files(context, users)? } else { <_>::default() };
        Ok(Self { words, own, returned, _files: files })
    }

    /// One end's text with their meanings.
    pub fn fill_in(&self, role: Role, text: &str) -> String {
        self.words
            .iter()
            .chain(self.own.of_role(role))
            .fold(text.to_owned(), |text, (word, meaning)| text.replace(word, meaning))
    }

    /// The files to bring back.
    pub fn into_returned(self) -> ReturnedFiles {
        self.returned
    }
}

/// The placeholders for named ports, in their texts' order.
pub fn named_ports(texts: &[&String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for text in texts {
        for piece in text.split(NAMED_PORT).skip(1) {
            let Some((name, _)) = piece.split_once('}') else { continue };
            let word = format!("{NAMED_PORT}{name}}}");
            let is_name = !name.is_empty() && name.chars().all(|it| it.is_ascii_alphanumeric() || "-_".contains(it));
            if is_name && !found.contains(&word) {
                found.push(word);
            }
        }
    }
    found
}

/// Writes a certificate for both hosts, for programs alone: a copy for each user.
fn security_files(
    context: &Context<'_>,
    users: &PerEnd<Option<User>>,
) -> Result<(PerEnd<Words>, Vec<PrivateFiles>), WorkloadError> {
    let hosts = context.hosts;
    let names = ["server", "client", "localhost"].map(str::to_owned);
    let addresses = [hosts.server_address, hosts.client_address].map(|address| address.to_string());
    let loopback = ["127.0.0.1", "::1"].map(str::to_owned);
    let all = names.into_iter().chain(addresses).chain(loopback).collect();
    let made = authority::certify(all)?;
    let contents = [made.certificate_pem, made.key_pem, made.authority_pem];
    let write = |user: &Option<User>| -> Result<_, HostError> {
        let files = PrivateFiles::new(user.as_ref())?;
        let named = SECURITY_FILES.into_iter().zip(["cert.pem", "key.pem", "ca.pem"]).zip(&contents);
        let words = named
            .map(|((word, name), content)| Ok((word.to_owned(), files.write(name, content)?.display().to_string())));
        Ok((words.collect::<Result<Vec<_>, HostError>>()?, files))
    };
    let (server, files) = write(&users.server)?;
    if users.client == users.server {
        return Ok((PerEnd { client: server.clone(), server }, vec![files]));
    }
    let (client, files_of_client) = write(&users.client)?;
    Ok((PerEnd { client, server }, vec![files, files_of_client]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_ports_come_in_order_each_once() {
        let texts = ["--a={port:web},{port:web} {port}".to_owned(), "{port:9_x-}{port:}{port: no}{port:db".to_owned()];
        let found = named_ports(&texts.iter().collect::<Vec<_>>());
        assert_eq!(found, ["{port:web}", "{port:9_x-}"]);
    }
}
