//! Empty derives: settings keep their serde and schemars attributes in a build without either.

use proc_macro::TokenStream;

/// Replaces serde's.
#[proc_macro_derive(Serialize, attributes(serde))]
pub fn serialize(_item: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// Replaces serde's.
#[proc_macro_derive(Deserialize, attributes(serde))]
pub fn deserialize(_item: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// In the place of schemars'.
#[proc_macro_derive(JsonSchema, attributes(schemars))]
pub fn json_schema(_item: TokenStream) -> TokenStream {
    TokenStream::new()
}
