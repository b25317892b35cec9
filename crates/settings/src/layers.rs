//! Settings in layers: what one leaves out, the one below gives.

/// A setting that may be left to the layer below.
pub trait Layered: Sized {
    /// Whether it is left out; a type that always says something keeps this.
    fn is_left_out(&self) -> bool {
        false
    }

    /// The same, or what is below where it is left out.
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

/// Declares a struct of settings, each [`Layered`], and `over`, which fills in what is left out. What is left out is not written.
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
