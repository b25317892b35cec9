//! The event `2["name","text"]`, the most frequent message, written and read without a tree of JSON values.

use crate::Error;
use crate::message::RESERVED;

pub(crate) fn write_event(name: &str, text: &str, out: &mut String) -> Result<(), Error> {
    let json = serde_json::to_string(&(name, text));
    let json = json.map_err(|e| Error::Json { place: "an event", cause: e.to_string() })?;
    out.push('2');
    out.push_str(&json);
    Ok(())
}

/// Such an event's name and text; none for any other message, valid or not.
pub(crate) fn read_event(event: &str) -> Option<(String, String)> {
    let (name, text): (String, String) = serde_json::from_str(event.strip_prefix('2')?).ok()?;
    (!RESERVED.contains(&name.as_str())).then_some((name, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Message, MessageDecoder, Payload};
    use proptest::prelude::*;

    fn read_by_tree(event: &str) -> Option<(String, String)> {
        match MessageDecoder::default().handle_text(event).ok()??.into_event().ok()? {
            (name, Payload::Text(text)) => Some((name, text)),
            (_, Payload::Binary(_)) => None,
        }
    }

    proptest! {
        #[test]
        fn it_is_written_as_from_a_tree(name in "e\\PC{0,40}", text in any::<String>(), controls in "[\0-\x7f]{0,80}") {
            for text in [text, controls] {
                let mut event = String::new();
                write_event(&name, &text, &mut event).unwrap();
                prop_assert_eq!(&event, &Message::event(&name, Payload::Text(text.clone())).encode().unwrap());
                prop_assert_eq!(read_event(&event), Some((name.clone(), text)));
            }
        }

        #[test]
        fn what_it_reads_is_what_the_tree_has(event in "2\\[\"[a\"\\\\n\0u0-9\u{e9}]{0,40}\",\"[a\"\\\\n\0u0-9\u{e9}]{0,40}\"\\]?") {
            let read = read_event(&event);
            prop_assert!(read.is_none() || read == read_by_tree(&event), "{event}: {read:?}");
        }
    }

    #[test]
    fn other_messages_are_left_to_the_tree() {
        for event in
            ["", "2", "2[", "2[\"a", "2[\"a\"]", "2[\"a\",1]", "2[\"a\",\"b\"]x", "21[\"a\",\"b\"]", "2[\"a\",\"b\\"]
        {
            assert_eq!(read_event(event), None, "{event}");
        }
        assert_eq!(read_event(r#"2["connect","a"]"#), None);
    }
}
