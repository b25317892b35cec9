//! Derives that derive nothing: settings keep their attributes for serde and schemars in a build that has neither.

use proc_macro::TokenStream;

/// In the place of serde's.
#[proc_macro_derive(Serialize, attributes(serde))]
pub fn serialize(_item: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// In the place of serde's.
#[proc_macro_derive(Deserialize, attributes(serde))]
pub fn deserialize(_item: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// In the place of schemars'.
#[proc_macro_derive(JsonSchema, attributes(schemars))]
pub fn json_schema(_item: TokenStream) -> TokenStream {
    TokenStream::new()
}
