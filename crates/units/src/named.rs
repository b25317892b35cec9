//! Enums with named variants.

/// Declares an enum with each variant's written name, returned by `name`.
#[macro_export]
macro_rules! named {
    ($(#[$whole:meta])* pub enum $Named:ident { $($(#[$own:meta])* $Variant:ident = $name:literal,)* }) => {
        $(#[$whole])*
        pub enum $Named { $($(#[$own])* $Variant,)* }

        impl $Named {
            /// Its name, as it is written.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$Variant => $name,)* }
            }
        }
    };
}
