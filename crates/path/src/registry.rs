//! Every kind of element there is: one line each, in the order in which a packet meets them.

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
}
