//! Every kind of element: one line each, in packet order.

use crate::group::elements;

elements! {
    mtu: crate::mtu::MtuSettings,
    loss: crate::loss::LossSettings,
    duplicate: crate::duplicate::DuplicateSettings,
    corrupt: crate::corrupt::CorruptSettings,
    background: crate::background::BackgroundSettings,
    link: crate::link::LinkSettings,
    slots: crate::slots::SlotSettings,
    light_deliveries: crate::light_deliveries::LightDeliverySettings,
    deliveries: crate::deliveries::DeliverySettings,
    delay: crate::delay::DelaySettings,
    hold: crate::hold::HoldSettings,
}
