//! Processors for a cell's threads, and whether the cell has the machine to itself.

use crate::backend::Backend;
use crate::realtime;
use crosswind_settings::SettingError;
use serde::{Deserialize, Serialize};

/// Where the caller wants the cell's threads to run. By default the cell has the machine to itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Placement {
    /// Largest share of a processor's time, from 0 to 1, for the emulator to watch the clock while other emulators run
    /// on the same processor. Without a value the emulator has the processor to itself.
    pub watch: Option<f64>,
    /// The emulator's processors. Empty: the process's last allowed one.
    pub emulator_cpus: Vec<usize>,
    /// The hosts' processors. Empty: all others.
    pub host_cpus: Vec<usize>,
}

impl Placement {
    /// Whether this machine can follow it.
    pub fn check(&self) -> Result<(), SettingError> {
        let hint = "leave placement out: the last processor is the emulator's";
        if let Some(watch) = self.watch.filter(|watch| !(0.0..=1.0).contains(watch)) {
            return Err(SettingError::new("watch", format!("{watch} is not a fraction between 0 and 1"), hint));
        }
        // Whether a processor may be used is found out by using it: the caller may have restricted itself, but not its cells.
        let before = realtime::cpus();
        let refused = [("emulator_cpus", &self.emulator_cpus), ("host_cpus", &self.host_cpus)]
            .into_iter()
            .find_map(|(key, cpus)| Some((key, *cpus.iter().find(|&&cpu| realtime::pin(&[cpu]).is_err())?)));
        let _ = realtime::pin(&before);
        match refused {
            Some((key, cpu)) => Err(SettingError::new(
                key,
                format!("has processor {cpu}, which is not among those that may be used"),
                hint,
            )),
            None => Ok(()),
        }
    }
}

/// Processors for pinned threads; empty if not pinned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cpus {
    /// For the emulator's thread.
    pub emulator: Vec<usize>,
    /// For the hosts: their workload and their kernel's work.
    pub hosts: Vec<usize>,
}

impl Cpus {
    /// The processors of `placement`; where it names none, the last processor for the emulator and the others for the hosts.
    /// With a single processor, nothing is pinned.
    pub fn assign(backend: Backend, placement: &Placement) -> Self {
        Self::among(realtime::cpus(), backend, placement)
    }

    fn among(mut cpus: Vec<usize>, backend: Backend, placement: &Placement) -> Self {
        if !placement.host_cpus.is_empty() && (!placement.emulator_cpus.is_empty() || !backend.is_emulated()) {
            let emulator = if backend.is_emulated() { placement.emulator_cpus.clone() } else { Vec::new() };
            return Self { emulator, hosts: placement.host_cpus.clone() };
        }
        if cpus.len() < 2 {
            return Self { emulator: Vec::new(), hosts: Vec::new() };
        }
        if !backend.is_emulated() {
            return Self { emulator: Vec::new(), hosts: cpus };
        }
        let last = cpus.split_off(cpus.len() - 1);
        let emulator = if placement.emulator_cpus.is_empty() { last } else { placement.emulator_cpus.clone() };
        let hosts = if placement.host_cpus.is_empty() { cpus } else { placement.host_cpus.clone() };
        Self { emulator, hosts }
    }

    /// Where the client's threads run.
    pub fn client(&self) -> &[usize] {
        self.hosts.get(..1).unwrap_or(&[])
    }

    /// Where the server's threads run.
    pub fn server(&self) -> &[usize] {
        let from = self.hosts.len().saturating_sub(1);
        &self.hosts[from..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn among(cpus: &[usize], backend: Backend, placement: &Placement) -> (Vec<usize>, Vec<usize>) {
        let Cpus { emulator, hosts } = Cpus::among(cpus.to_vec(), backend, placement);
        (emulator, hosts)
    }

    #[test]
    fn the_emulator_has_the_last_processor_and_the_hosts_the_others() {
        let alone = Placement::default();
        assert_eq!(among(&[0, 1], Backend::Tun, &alone), (vec![1], vec![0]));
        assert_eq!(among(&[0, 2, 5], Backend::Tun, &alone), (vec![5], vec![0, 2]));
        assert_eq!(among(&[0, 1], Backend::Direct, &alone), (vec![], vec![0, 1]));
        assert_eq!(among(&[0, 1], Backend::Netem, &alone), (vec![], vec![0, 1]));
        assert_eq!(among(&[3], Backend::Tun, &alone), (vec![], vec![]));
    }

    #[test]
    fn processors_that_a_placement_names_are_used() {
        let placement = Placement { watch: Some(0.1), emulator_cpus: vec![6], host_cpus: vec![1, 2] };
        assert_eq!(among(&[0, 1, 2, 6, 7], Backend::Tun, &placement), (vec![6], vec![1, 2]));
    }

    #[test]
    fn a_processor_that_may_not_be_used_is_named() {
        let placement = Placement { host_cpus: vec![100_000], ..Placement::default() };
        let error = placement.check().unwrap_err().to_string();
        assert_eq!(error, "host_cpus has processor 100000, which is not among those that may be used");
        assert_eq!(Placement::default().check(), Ok(()));
    }

    #[test]
    fn a_share_is_a_fraction() {
        let placement = Placement { watch: Some(1.5), ..Placement::default() };
        assert_eq!(placement.check().unwrap_err().to_string(), "watch 1.5 is not a fraction between 0 and 1");
    }
}
