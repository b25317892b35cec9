//! A struct with settings of every kind, described and read.
#![allow(clippy::unwrap_used)] // helpers of tests, where a failure is a failed test

use crosswind_settings::{SettingError, describe, read};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// A group of settings,
/// in two lines.
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
struct Everything {
    /// Which `transport` it is.
    #[schemars(extend("kind" = "transport"))]
    transport: String,
    /// Bytes of one message.
    #[schemars(range(min = 1, max = LARGEST))]
    size_bytes: u64,
    /// Bytes of the page.
    #[schemars(extend("study" = "html_size"))]
    html_bytes: u64,
    /// Longest wait.
    #[schemars(range(min = 1_000_000), extend("default_help" = "60 s", "varies" = false))]
    timeout_ns: Option<u64>,
    /// Messages a second.
    #[schemars(range(max = 1e7), extend("only_with" = {"key": "mode", "value": "open"}))]
    rate_per_s: Option<f64>,
    /// Share of packets.
    #[schemars(range(min = 0.0, max = 1.0), extend("unit" = "probability"))]
    loss: f64,
    /// First window.
    #[schemars(range(min = 1, max = 1000), extend("unit" = "segments"))]
    initial_window: Option<u32>,
    /// When the next message is sent.
    mode: Mode,
    /// Which window it has.
    window: Option<Plain>,
    /// Whether it is on.
    on: bool,
    /// A limit.
    #[schemars(extend("kind" = "queue"))]
    queue: Option<Limit>,
    /// A program.
    client: Option<Vec<String>>,
}

const LARGEST: u64 = 1 << 62;

/// Documented choices, which a schema lists one by one.
#[derive(Debug, Default, PartialEq, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    /// One in flight.
    #[default]
    Closed,
    /// At a rate.
    Open,
}

#[derive(Debug, PartialEq, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Plain {
    RatherLarge,
    Small,
}

#[derive(Debug, PartialEq, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Limit {
    Packets(u64),
}

impl Default for Everything {
    fn default() -> Self {
        Self {
            transport: "tcp".into(),
            size_bytes: 1,
            html_bytes: 36_000,
            timeout_ns: None,
            rate_per_s: None,
            loss: 0.0,
            initial_window: None,
            mode: Mode::Closed,
            window: None,
            on: true,
            queue: None,
            client: None,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("varies" = false, "default_help" = "as the profile has it"))]
#[allow(dead_code)]
struct Required {
    /// What has to be given.
    name: String,
    /// What may be left out.
    note: Option<String>,
}

fn keys() -> Vec<Value> {
    describe::<Everything>().keys.iter().map(|key| serde_json::to_value(key).unwrap()).collect()
}

fn column(name: &str) -> Vec<Value> {
    keys().into_iter().map(|key| key[name].clone()).collect()
}

fn refused(settings: &Value) -> SettingError {
    read::<Everything>(settings.as_object().unwrap()).unwrap_err()
}

#[test]
fn a_key_is_printed_whole() {
    let first: Vec<_> = keys().into_iter().take(2).collect();
    assert_eq!(
        first,
        [
            json!({"name": "transport", "study": "transport", "type": "transport", "unit": null, "default": "tcp",
                   "default_help": null, "minimum": null, "maximum": null, "choices": null, "required": false,
                   "varies": true, "only_with": null, "help": "Which transport it is."}),
            json!({"name": "size_bytes", "study": "size", "type": "integer", "unit": "bytes", "default": 1,
                   "default_help": null, "minimum": 1, "maximum": 1_u64 << 62, "choices": null, "required": false,
                   "varies": true, "only_with": null, "help": "Bytes of one message."}),
        ]
    );
    assert_eq!(describe::<Everything>().help, "A group of settings, in two lines.");
}

#[test]
fn keys_stand_in_the_order_of_the_fields_with_their_names_in_a_study() {
    let studies = "transport size html_size timeout rate loss initial_window mode window on queue client";
    assert_eq!(column("study"), studies.split(' ').collect::<Vec<_>>());
    assert_eq!(column("name")[3..5], ["timeout_ns", "rate_per_s"]);
}

#[test]
fn types_units_and_choices_follow_from_the_fields() {
    let types = "transport integer integer integer number number integer choice choice boolean queue arguments";
    assert_eq!(column("type"), types.split(' ').collect::<Vec<_>>());
    let units = column("unit");
    assert_eq!(units[1..7], ["bytes", "bytes", "ns", "1/s", "probability", "segments"]);
    assert_eq!(units[7..], vec![Value::Null; 5]);
    assert_eq!(column("choices")[7..9], [json!(["closed", "open"]), json!(["rather-large", "small"])]);
    assert_eq!(column("default")[5..9], [json!(0.0), json!(null), json!("closed"), json!(null)]);
    assert_eq!((&column("maximum")[4], &column("minimum")[3]), (&json!(10_000_000), &json!(1_000_000)));
    assert_eq!(column("default_help")[3], json!("60 s"));
    assert_eq!(column("varies")[2..4], [true, false]);
    assert_eq!(column("only_with")[3..5], [json!(null), json!({"key": "mode", "value": "open"})]);
}

#[test]
fn a_key_without_a_default_is_required_and_a_group_may_never_vary() {
    let keys = &describe::<Required>().keys;
    let flags: Vec<_> = keys.iter().map(|key| (key.required, key.varies)).collect();
    assert_eq!(flags, [(true, false), (false, false)]);
    let helps: Vec<_> = keys.iter().map(|key| key.default_help.as_deref()).collect();
    assert_eq!(helps, [None, Some("as the profile has it")]);
    let error = read::<Required>(&serde_json::Map::new()).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.hint.as_str()), ("name is missing", "What has to be given."));
}

#[test]
fn what_is_left_out_has_its_default_and_null_is_left_out() {
    let settings = json!({"size_bytes": LARGEST, "timeout_ns": null, "mode": "open", "client": ["a", "b"], "loss": 1});
    let settings: Everything = read(settings.as_object().unwrap()).unwrap();
    let expected = Everything {
        size_bytes: LARGEST,
        mode: Mode::Open,
        client: Some(vec!["a".into(), "b".into()]),
        loss: 1.0,
        ..Everything::default()
    };
    assert_eq!(settings, expected);
}

#[test]
fn a_group_inside_another_struct_is_held_to_its_keys_as_well() {
    #[derive(Debug, Deserialize)]
    struct Outer {
        #[serde(deserialize_with = "crosswind_settings::deserialize")]
        inner: Everything,
    }
    let read = |text: &str| serde_json::from_str::<Outer>(text).map(|outer| outer.inner.size_bytes);
    assert_eq!(read(r#"{"inner": {"size_bytes": 7}}"#).unwrap(), 7);
    let error = read(r#"{"inner": {"size_bytes": 0}}"#).unwrap_err().to_string();
    assert!(error.starts_with("size_bytes 0 is not between 1 and"), "{error}");
}

#[test]
fn every_value_is_refused_in_the_same_words() {
    let cases = [
        (json!({"size_bytes": 0}), "size_bytes 0 is not between 1 and 4611686018427387904"),
        (json!({"size_bytes": LARGEST + 1}), "size_bytes 4611686018427387905 is not between 1 and 4611686018427387904"),
        (json!({"size_bytes": 1.5}), "size_bytes 1.5 is not a whole number"),
        (json!({"size_bytes": null}), "size_bytes null is not a whole number"),
        (json!({"size_bytes": -1}), "size_bytes -1 is not between 1 and 4611686018427387904"),
        (json!({"html_bytes": -1}), "html_bytes -1 is less than 0"),
        (json!({"timeout_ns": 5}), "timeout_ns 5 is less than 1000000"),
        (json!({"rate_per_s": 2e7}), "rate_per_s 20000000.0 is more than 10000000"),
        (json!({"loss": 1.01}), "loss 1.01 is not between 0 and 1"),
        (json!({"loss": "1%"}), "loss \"1%\" is not a number"),
        (json!({"mode": "opne"}), "mode opne is not one of closed, open"),
        (json!({"mode": 1}), "mode 1 is not one of closed, open"),
        (json!({"on": 1}), "on 1 is not true or false"),
        (json!({"client": "a b"}), "client \"a b\" is not a list of texts"),
        (json!({"queue": 5}), r#"queue 5 is not {"packets": N} or {"bytes": N}"#),
        (json!({"sise_bytes": 5}), "sise_bytes is not a known key"),
    ];
    for (settings, message) in cases {
        assert_eq!(refused(&settings).to_string(), message);
    }
}

#[test]
fn a_refusal_carries_its_key_and_what_would_be_right() {
    let error = refused(&json!({"loss": 2})).within("path.forward");
    assert_eq!((error.key.as_deref(), error.hint.as_str()), (Some("path.forward.loss"), "Share of packets."));
    assert_eq!(error.to_string(), "path.forward.loss 2 is not between 0 and 1");
    assert!(refused(&json!({"x": 2})).hint.starts_with("known keys: transport, size_bytes, html_bytes, timeout_ns"));
    // Errors known only to the type itself are put down to its key as well.
    let error = refused(&json!({"queue": {"cars": 2}}));
    assert_eq!(error.key.as_deref(), Some("queue"));
    assert!(error.problem.starts_with("is wrong: unknown variant `cars`"), "{error}");
}

#[test]
#[should_panic(expected = r#"the key size has the unit "furlongs", which no key has"#)]
fn a_unit_that_there_is_not_is_a_fault_of_the_declaration() {
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Wrong {
        /// How far.
        #[schemars(extend("unit" = "furlongs"))]
        size: u64,
    }
    describe::<Wrong>();
}

#[test]
fn so_is_an_effect_that_depends_on_what_cannot_be() {
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct NoSuchKey {
        /// How often.
        #[schemars(extend("only_with" = {"key": "mood", "value": "open"}))]
        rate: u64,
    }
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct NoSuchValue {
        /// Which.
        mode: Mode,
        /// How often.
        #[schemars(extend("only_with" = {"key": "mode", "value": "opne"}))]
        rate: u64,
    }
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Misspelt {
        /// Whether.
        on: bool,
        /// How often.
        #[schemars(extend("only_with" = {"kye": "on"}))]
        rate: u64,
    }
    fn fault<T: JsonSchema + 'static>() -> String {
        *std::panic::catch_unwind(describe::<T>).unwrap_err().downcast().unwrap()
    }
    assert!(fault::<NoSuchKey>().starts_with(r#"the key rate has an effect only with mood "open""#));
    assert!(fault::<NoSuchValue>().starts_with(r#"the key rate has an effect only with mode "opne""#));
    assert!(fault::<Misspelt>().contains("unknown field `kye`"));
}

#[test]
fn a_series_is_numbers_each_within_the_range() {
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Trace {
        /// Rates, one after another.
        #[schemars(inner(range(min = 1, max = 9)))]
        rates: Vec<f64>,
    }
    let key = serde_json::to_value(&describe::<Trace>().keys[0]).unwrap();
    assert_eq!((&key["type"], &key["minimum"], &key["maximum"]), (&json!("series"), &json!(1), &json!(9)));
    let read = |rates: Value| read::<Trace>(json!({"rates": rates}).as_object().unwrap()).map_err(|e| e.to_string());
    assert_eq!(read(json!([1, 2.5, 9])), Ok(Trace { rates: vec![1.0, 2.5, 9.0] }));
    assert_eq!(read(json!([1, 10])).unwrap_err(), "rates 10 is not between 1 and 9");
    for wrong in [json!(["1"]), json!("1 2"), json!({"file": "never read here"})] {
        assert!(read(wrong).unwrap_err().ends_with(r#"is not a list of numbers, or {"file": "..."}"#));
    }
}
