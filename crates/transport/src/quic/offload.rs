//! Whether the kernel splits one large send into several UDP datagrams.

use std::fs;

/// Since 6.11 Linux splits them also for a device without checksum offload, such as a TUN device. Before, it refuses
/// the call. quinn then stops batching, but counts the call's packets as lost, takes that for congestion and leaves
/// slow start: 1 MB took three times as long on 6.1 as on 6.12.
const SPLITS_FOR_EVERY_DEVICE: (u32, u32) = (6, 11);

pub(super) fn kernel_splits_datagrams() -> bool {
    fs::read_to_string("/proc/sys/kernel/osrelease")
        .is_ok_and(|release| series(&release).is_some_and(|series| series >= SPLITS_FOR_EVERY_DEVICE))
}

/// `6.12.90-generic` is in the series 6.12.
fn series(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|character: char| !character.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_names_its_series() {
        assert_eq!(series("6.1.0-44-amd64\n"), Some((6, 1)));
        assert_eq!(series("6.12.90"), Some((6, 12)));
        assert_eq!(series("7.0-rc1+"), Some((7, 0)));
        assert_eq!(series("unknown"), None);
        assert!(series("6.8.0-31-generic").unwrap() < SPLITS_FOR_EVERY_DEVICE);
        assert!(series("6.11").unwrap() >= SPLITS_FOR_EVERY_DEVICE);
    }
}
