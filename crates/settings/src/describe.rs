//! From a struct's schema to its keys.

use crate::key::{Key, KeyType, OnlyWith, split_unit};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::any::{TypeId, type_name};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

/// A group of settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// The subject of these settings.
    pub help: String,
    /// The keys, in the order of the struct's fields.
    pub keys: Vec<Key>,
}

/// Descriptions so far, by type.
static KNOWN: LazyLock<Mutex<HashMap<TypeId, &'static Group>>> = LazyLock::new(Mutex::default);

/// The group for `T`. A type is described once and kept.
///
/// # Panics
/// When a field of `T` describes an impossible key: an unknown type or unit, or an `only_with` without such a key or
/// value in `T`. That is a fault of `T`.
pub fn describe<T: JsonSchema + 'static>() -> &'static Group {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    // Leaked on purpose: there are as many groups as there are types.
    known.entry(TypeId::of::<T>()).or_insert_with(|| Box::leak(Box::new(group_of::<T>())))
}

/// `T` and `Common` together, as [`describe`]: the subject of `T`, and both's keys.
pub fn describe_with<T: JsonSchema + 'static, Common: JsonSchema + 'static>() -> &'static Group {
    let (own, common) = (describe::<T>(), describe::<Common>());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.entry(TypeId::of::<(T, Common)>()).or_insert_with(|| {
        let keys = own.keys.iter().chain(&common.keys).cloned().collect();
        Box::leak(Box::new(Group { help: own.help.clone(), keys }))
    })
}

fn group_of<T: JsonSchema>() -> Group {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let whole = schema.as_object().unwrap_or_else(|| unreachable!("{} has no fields", type_name::<T>()));
    let common = Common {
        required: items(whole, "required").iter().filter_map(Value::as_str).collect(),
        default_help: whole.get("default_help").and_then(Value::as_str),
        varies: whole.get("varies").and_then(Value::as_bool).unwrap_or(true),
    };
    let fields = whole.get("properties").and_then(Value::as_object).into_iter().flatten();
    let keys: Vec<_> = fields.filter_map(|(name, field)| Some(key_of(name, field.as_object()?, &common))).collect();
    for key in &keys {
        let Some(OnlyWith { key: other, value }) = &key.only_with else { continue };
        let can_be = |other: &Key| match value {
            Value::Array(values) => values.iter().all(|value| other.check(value).is_ok()),
            value => value.is_null() || other.check(value).is_ok(),
        };
        assert!(
            keys.iter().any(|key| key.name == *other && can_be(key)),
            "the key {} has an effect only with {other} {value}, which {} cannot have",
            key.name,
            type_name::<T>()
        );
    }
    Group { help: help_of(whole), keys }
}

/// The struct's attributes for all its keys.
struct Common<'a> {
    required: Vec<&'a str>,
    /// The default's dependence, for keys without a default.
    default_help: Option<&'a str>,
    varies: bool,
}

/// A key by its schema.
fn key_of(name: &str, field: &Map<String, Value>, common: &Common<'_>) -> Key {
    let (stem, unit) = split_unit(name);
    let choices = choices_of(field);
    let text = |extension: &str| field.get(extension).and_then(Value::as_str).map(str::to_owned);
    // A series has the range of its numbers.
    let number = |bound: &str| match find(field, bound).or_else(|| find(field, "items")?.get(bound)) {
        Some(Value::Number(number)) => Some(whole_number(number)),
        _ => None,
    };
    let default = field.get("default").cloned().unwrap_or(Value::Null);
    let required = common.required.contains(&name);
    let common_help = common.default_help.filter(|_| default.is_null() && !required).map(str::to_owned);
    Key {
        name: name.to_owned(),
        study: text("study").unwrap_or_else(|| stem.to_owned()),
        key_type: key_type_of(name, field, !choices.is_empty()),
        unit: extension(name, field, "unit").or(unit),
        default,
        default_help: text("default_help").or(common_help),
        minimum: number("minimum"),
        maximum: number("maximum"),
        choices: (!choices.is_empty()).then_some(choices),
        required,
        varies: field.get("varies").and_then(Value::as_bool).unwrap_or(common.varies),
        only_with: extension(name, field, "only_with"),
        on_sockets: field.contains_key("on_sockets") || field.contains_key("set_by_programs"),
        set_by_programs: text("set_by_programs"),
        help: help_of(field),
        nullable: is_nullable(field),
    }
}

fn key_type_of(name: &str, field: &Map<String, Value>, has_choices: bool) -> KeyType {
    let json_type = || match find(field, "type") {
        Some(Value::Array(types)) => types.iter().find(|kind| *kind != "null"),
        other => other,
    };
    if let Some(kind) = extension(name, field, "kind") {
        return kind;
    }
    if has_choices {
        return KeyType::Choice;
    }
    match json_type().and_then(Value::as_str) {
        Some("integer") => KeyType::Integer,
        Some("number") => KeyType::Number,
        Some("boolean") => KeyType::Boolean,
        Some("string") => KeyType::String,
        Some("array") => match find(field, "items").and_then(|items| items.get("type")?.as_str()) {
            Some("string") => KeyType::Arguments,
            _ => KeyType::Series,
        },
        _ => unreachable!("the key {name} has a type that no key has: {field:?}"),
    }
}

/// A fieldless enum's words. They are in `enum`, or one by one in `oneOf` if each has a help.
fn choices_of(schema: &Map<String, Value>) -> Vec<String> {
    let word = |value: &Value| value.as_str().map(str::to_owned);
    let mut choices: Vec<String> = items(schema, "enum").iter().filter_map(word).collect();
    choices.extend(schema.get("const").and_then(word));
    for alternative in alternatives(schema) {
        choices.extend(choices_of(alternative));
    }
    choices
}

fn is_nullable(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|kind| kind == "null"),
        Some(kind) => kind == "null",
        None => alternatives(schema).any(is_nullable),
    }
}

/// A schema's value for `word`, its own or in one of its alternatives.
fn find<'a>(schema: &'a Map<String, Value>, word: &str) -> Option<&'a Value> {
    schema.get(word).or_else(|| alternatives(schema).find_map(|alternative| find(alternative, word)))
}

fn alternatives(schema: &Map<String, Value>) -> impl Iterator<Item = &Map<String, Value>> {
    ["oneOf", "anyOf"].into_iter().flat_map(|word| items(schema, word)).filter_map(Value::as_object)
}

fn items<'a>(schema: &'a Map<String, Value>, word: &str) -> &'a [Value] {
    schema.get(word).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The documentation, with its lines joined.
fn help_of(schema: &Map<String, Value>) -> String {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ").replace('`', "")
}

/// `number` without the `.0` of a fraction's bound.
fn whole_number(number: &serde_json::Number) -> serde_json::Number {
    match number.as_f64() {
        Some(value) if number.is_f64() && value.fract() == 0.0 && value.abs() < 9e15 => (value as i64).into(),
        _ => number.clone(),
    }
}

/// An attribute of the key `name` beyond its schema.
fn extension<T: DeserializeOwned>(name: &str, field: &Map<String, Value>, word: &str) -> Option<T> {
    let said = field.get(word)?;
    let read = serde_json::from_value(said.clone());
    Some(read.unwrap_or_else(|error| unreachable!("the key {name} has the {word} {said}, which no key has: {error}")))
}
