//! How calls are driven, and what connections and servers share.

pub(crate) mod arriving;
pub(crate) mod call;
pub mod driver;
pub(crate) mod halves;
pub mod serving;
pub(crate) mod tasks;
