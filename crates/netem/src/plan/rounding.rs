//! Numbers as the kernel keeps them.

use crosswind_path::link::{LinkRate, LinkSettings};

/// The tolerance for the kernel's red weight: 0.002 is 2.3 % more than 1/512.
pub const RED_WEIGHT_ERROR: f64 = 0.03;

/// By how many bits sizes and rates are larger to the kernel, so that a rate is a whole number.
pub fn shift(link: &LinkSettings) -> u8 {
    let rates = [link.rate.and_then(LinkRate::moving), link.peak_rate].into_iter().flatten();
    let zeros = rates.map(|rate| rate.as_bps().trailing_zeros().min(3)).min().unwrap_or(3);
    3 - zeros as u8
}

/// A gain as the kernel keeps it, if it does.
pub fn sixteenths(gain: Option<f64>) -> Option<u32> {
    let scaled = gain.unwrap_or_default() * 16.0;
    (scaled.fract() == 0.0 && (0.0..=32.0).contains(&scaled)).then_some(scaled as u32)
}

/// The EWMA weight as a power of a half, if one is near.
pub fn weight_log(weight: f64) -> Option<u8> {
    let log = (-weight.log2()).round().clamp(0.0, 31.0);
    ((-log).exp2() / weight - 1.0).abs().le(&RED_WEIGHT_ERROR).then_some(log as u8)
}
