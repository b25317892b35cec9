//! The client's and server's processor time, by the running function in samples.
//!
//! A sample is a stack of functions. It belongs to the innermost recognised one: `memmove`'s time is copying, whoever
//! called it, and a hash table's belongs to the function that uses it.

mod symbols;

use crosswind_host::{Sampler, Samples};
use crosswind_workload::Warning;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;
use symbols::{Part, Parts, part_of};

/// With fewer stacks than this, shares are known to no better than 10 %: for one half the standard error with 100 is 5.
const MIN_STACKS: usize = 100;

/// Samples of the threads of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HostProfile {
    samples: u64,
    cpu_ns: u64,
    parts: Parts,
}

/// Where the processor time of both hosts went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Profile {
    /// CPU time that a sample stands for. The kernel takes them less often: one that it takes counts for the CPU time since
    /// the one before.
    interval_ns: u64,
    client: HostProfile,
    server: HostProfile,
}

impl Profile {
    /// The profile from `sampler`, and doubts about it; no profile if no thread was sampled.
    pub fn new(sampler: &Sampler) -> (Option<Self>, Option<Warning>) {
        let [client, server] = sampler.samples();
        if client.cpu_ns == 0 && server.cpu_ns == 0 {
            return (None, None);
        }
        let missed = client.missed + server.missed;
        let stacks = client.samples.len() + server.samples.len();
        let mut known = HashMap::new();
        let mut sort =
            |address: u64| *known.entry(address).or_insert_with(|| sampler.frames(address).iter().find_map(part_of));
        let (client, server) = (host(&client, &mut sort), host(&server, &mut sort));
        // Only debug information knows inlined functions, masking among them.
        let own = sampler.frames(Self::new as *const () as u64 + 1);
        let stripped = own.iter().all(|frame| frame.file.is_empty());
        let doubt = if missed > 0 {
            Some(Warning::profile_incomplete(missed))
        } else if stripped {
            Some(Warning::profile_stripped())
        } else if stacks < MIN_STACKS {
            Some(Warning::profile_small(stacks))
        } else {
            None
        };
        (Some(Self { interval_ns: Sampler::INTERVAL_NS, client, server }), doubt)
    }
}

/// One host's shares; `sort` gives the part for the function at an address.
fn host(samples: &Samples, sort: &mut dyn FnMut(u64) -> Option<Part>) -> HostProfile {
    let mut spent_ns = Parts::default();
    for sample in &samples.samples {
        let part = sample.stack.iter().find_map(|&address| sort(address)).unwrap_or(Part::Other);
        *spent_ns.count(part) += sample.cpu_ns;
    }
    let (mut parts, mut all) = (Parts::default(), 0);
    for &part in Part::ALL {
        let count = (*spent_ns.count(part) + Sampler::INTERVAL_NS / 2) / Sampler::INTERVAL_NS;
        *parts.count(part) = count;
        all += count;
    }
    HostProfile { samples: all, cpu_ns: samples.cpu_ns, parts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crosswind_host::Sample;

    #[test]
    fn a_sample_belongs_to_the_innermost_function_that_is_recognised() {
        let parts = |address: u64| match address {
            1 => None,
            2 => Some(Part::Masking),
            _ => Some(Part::Runtime),
        };
        let sample = |ms: u64, stack: &[u64]| Sample { cpu_ns: ms * 1_000_000, stack: stack.to_vec() };
        let samples = vec![sample(4, &[1, 2, 3]), sample(8, &[3, 2]), sample(1, &[1]), sample(2, &[])];
        let host = host(&Samples { cpu_ns: 16_000_000, samples, missed: 0 }, &mut |address| parts(address));
        assert_eq!((host.samples, host.cpu_ns), (15, 16_000_000));
        assert_eq!(host.parts, Parts { masking: 4, runtime: 8, other: 3, ..Parts::default() });
    }

    #[test]
    fn parts_are_written_with_the_names_that_people_read() {
        let text = serde_json::to_string(&Parts { tls: 2, ..Parts::default() }).unwrap();
        assert_eq!(
            text,
            r#"{"system calls":0,"masking":0,"framing":0,"TLS":2,"copying":0,"allocation":0,"runtime":0,"other":0}"#
        );
    }
}
