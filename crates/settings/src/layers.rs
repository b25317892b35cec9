//! Settings in layers: a missing setting comes from the layer below.

/// A setting possibly left to the layer below.
pub trait Layered: Sized {
    /// Whether it is missing; a type that is always set keeps this.
    fn is_left_out(&self) -> bool {
        false
    }

    /// The same, or the one below if missing.
    #[must_use]
    fn over(self, below: Self) -> Self {
        if self.is_left_out() { below } else { self }
    }
}

impl<T> Layered for Option<T> {
    fn is_left_out(&self) -> bool {
        self.is_none()
    }
}

/// Declares a struct of settings, each [`Layered`], and `over`, which fills in missing ones. Missing ones are not
/// written.
#[macro_export]
macro_rules! layers {
    ($(#[$whole:meta])* pub struct $Settings:ident { $($(#[$own:meta])* pub $field:ident: $Type:ty,)* }) => {
        $(#[$whole])*
        pub struct $Settings {
            $($(#[$own])* #[serde(skip_serializing_if = "crosswind_settings::Layered::is_left_out")] pub $field: $Type,)*
        }

        impl $crate::Layered for $Settings {
            fn over(self, below: Self) -> Self {
                Self { $($field: $crate::Layered::over(self.$field, below.$field),)* }
            }
        }
    };
}
