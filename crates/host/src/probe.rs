//! Finds out by trial what this machine allows.

use crate::namespace::Namespace;
use crate::privilege::{self, Privilege};
use crate::tun::Tun;
use crate::{realtime, sysctl};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, thread};

/// A trial's result.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Whether it works.
    pub ok: bool,
    /// The observation.
    pub detail: String,
    /// Advice if it does not work.
    pub hint: Option<String>,
}

impl Finding {
    fn new(ok: bool, detail: impl Into<String>, hint: &str) -> Self {
        Self { ok, detail: detail.into(), hint: (!ok).then(|| hint.to_owned()) }
    }
}

/// Tries everything a cell needs or can use. Call it before any thread is started.
pub fn probe() -> BTreeMap<&'static str, Finding> {
    let mut findings = BTreeMap::new();
    let privilege = privilege::acquire();
    let detail = match &privilege {
        Ok(Privilege::Root) => "running as root".to_owned(),
        Ok(Privilege::UserNamespace) => "in a user namespace of its own".to_owned(),
        Err(e) => e.to_string(),
    };
    let hint = "run with sudo, or allow user namespaces (sysctl user.max_user_namespaces)";
    findings.insert("privilege", Finding::new(privilege.is_ok(), detail, hint));

    let limit: u64 =
        fs::read_to_string("/proc/sys/user/max_user_namespaces").ok().and_then(|t| t.trim().parse().ok()).unwrap_or(0);
    let hint = "to run without root: sysctl -w user.max_user_namespaces=10000 (and kernel.apparmor_restrict_unprivileged_userns=0 where it exists)";
    findings.insert("user_namespaces", Finding::new(limit > 0, format!("up to {limit}"), hint));

    let namespace = Namespace::new();
    let detail = namespace.as_ref().map_or_else(ToString::to_string, |_| "can be made".to_owned());
    findings.insert("namespaces", Finding::new(namespace.is_ok(), detail, hint_of(&namespace)));

    let tun = namespace.and_then(|namespace| namespace.run(|| Tun::create("probe0").map(|_| ())));
    let detail = tun.as_ref().map_or_else(ToString::to_string, |()| "devices can be made".to_owned());
    findings.insert("tun", Finding::new(tun.is_ok(), detail, hint_of(&tun)));

    // On its own thread, which keeps the priority.
    let realtime = thread::spawn(realtime::raise_priority).join().unwrap_or(false);
    let detail = if realtime { "SCHED_FIFO is allowed" } else { "not allowed: timing will be less exact" };
    findings.insert("realtime", Finding::new(realtime, detail, "run with sudo, or raise the limit: ulimit -r 20"));

    let locked = realtime::lock_memory();
    let detail = if locked { "memory can be locked" } else { "memory cannot be locked" };
    findings
        .insert("memory_lock", Finding::new(locked, detail, "run with sudo, or raise the limit: ulimit -l unlimited"));

    let available = sysctl::get("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
    let missing: Vec<_> =
        ["reno", "cubic", "bbr"].into_iter().filter(|name| !available.split(' ').any(|a| a == *name)).collect();
    let hint = "load the missing ones: modprobe tcp_cubic tcp_bbr";
    findings.insert("congestion_controls", Finding::new(missing.is_empty(), available, hint));

    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned();
    let netem = has_netem(&release);
    let detail = if netem { "the kernel has it" } else { "the kernel lacks it; the emulator does not need it" };
    findings
        .insert("netem", Finding::new(netem, detail, "only to compare with netem: a kernel with CONFIG_NET_SCH_NETEM"));
    findings.insert("kernel", Finding::new(true, release, ""));

    let cpus = realtime::cpus();
    let hint = "with one processor the emulator and the hosts disturb each other: use a machine with two";
    findings.insert("cpus", Finding::new(cpus.len() > 1, format!("{} usable", cpus.len()), hint));
    findings
}

fn hint_of<T>(result: &crate::Result<T>) -> &str {
    match result {
        Err(error) => error.hint.as_deref().unwrap_or("see the message"),
        Ok(_) => "",
    }
}

/// Whether the running kernel has the netem queueing discipline: built in, loaded, or as a module on disk.
fn has_netem(release: &str) -> bool {
    let listed = |file: String| fs::read_to_string(file).is_ok_and(|text| text.contains("sch_netem"));
    Path::new("/sys/module/sch_netem").exists()
        || listed(format!("/lib/modules/{release}/modules.builtin"))
        || listed(format!("/lib/modules/{release}/modules.dep"))
}
