//! The event `2["name","text"]`, written and read without a tree of JSON values: that is what most messages are.

use crate::message::RESERVED;

/// So many bytes are looked at in one step.
const WIDE: usize = 32;

/// Appends the event.
pub(crate) fn write_event(name: &str, text: &str, out: &mut String) {
    out.reserve(name.len() + text.len() + "2[\"\",\"\"]".len());
    out.push_str("2[");
    write_json(name, out);
    out.push(',');
    write_json(text, out);
    out.push(']');
}

/// The name and the text of an event as [`write_event`] writes it. Anything else may be right or wrong.
pub(crate) fn read_event(event: &str) -> Option<(String, String)> {
    let (name, rest) = read_json(event.strip_prefix("2[")?)?;
    let (text, rest) = read_json(rest.strip_prefix(',')?)?;
    (rest == "]" && !RESERVED.contains(&name.as_str())).then_some((name, text))
}

/// Appends `text` as JSON (RFC 8259, section 7).
fn write_json(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    loop {
        let (plain, special) = rest.split_at(plain_bytes(rest.as_bytes()));
        out.push_str(plain);
        let mut special = special.chars();
        match special.next() {
            None => break,
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some('\n') => out.push_str("\\n"),
            Some('\r') => out.push_str("\\r"),
            Some('\t') => out.push_str("\\t"),
            Some('\u{8}') => out.push_str("\\b"),
            Some('\u{c}') => out.push_str("\\f"),
            Some(control) => {
                out.push_str("\\u00");
                out.extend([16, 1].map(|place| char::from_digit(u32::from(control) / place % 16, 16).unwrap_or('0')));
            }
        }
        rest = special.as_str();
    }
    out.push('"');
}

/// The text that `json` begins with, and what follows it.
fn read_json(json: &str) -> Option<(String, &str)> {
    let bytes = json.as_bytes();
    if bytes.first() != Some(&b'"') {
        return None;
    }
    let mut end = 1;
    let mut escaped = false;
    loop {
        end += plain_bytes(bytes.get(end..)?);
        match bytes.get(end)? {
            b'"' => break,
            b'\\' => {
                escaped = true;
                end += 2;
            }
            _ => return None,
        }
    }
    let (quoted, rest) = json.split_at(end + 1);
    let text = if escaped { serde_json::from_str(quoted).ok()? } else { quoted[1..end].to_owned() };
    Some((text, rest))
}

/// How many bytes come before the first that stands for something else, or must not stand, in JSON's texts.
fn plain_bytes(bytes: &[u8]) -> usize {
    let special = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    // Without a way out in between, the compiler looks at all of them at once.
    let has_special = |part: &&[u8]| part.iter().fold(false, |found, &byte| found | special(byte));
    let plain = bytes.chunks_exact(WIDE).take_while(|part| !has_special(part)).count() * WIDE;
    let rest = &bytes[plain..];
    plain + rest.iter().position(|&byte| special(byte)).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Message, MessageDecoder, Payload};
    use proptest::prelude::*;

    fn slowly(event: &str) -> Option<(String, String)> {
        match MessageDecoder::default().handle_text(event).ok()??.into_event().ok()? {
            (name, Payload::Text(text)) => Some((name, text)),
            (_, Payload::Binary(_)) => None,
        }
    }

    proptest! {
        #[test]
        fn it_is_written_as_the_tree_is(name in "e\\PC{0,40}", text in any::<String>(), controls in "[\0-\x7f]{0,80}") {
            for text in [text, controls] {
                let mut event = String::new();
                write_event(&name, &text, &mut event);
                prop_assert_eq!(&event, &Message::event(&name, Payload::Text(text.clone())).encode().unwrap());
                prop_assert_eq!(read_event(&event), Some((name.clone(), text)));
            }
        }

        #[test]
        fn what_it_reads_the_tree_reads_too(event in "2\\[\"[a\"\\\\n\0u0-9\u{e9}]{0,40}\",\"[a\"\\\\n\0u0-9\u{e9}]{0,40}\"\\]?") {
            let read = read_event(&event);
            prop_assert!(read.is_none() || read == slowly(&event), "{event}: {read:?}");
        }
    }

    #[test]
    fn what_it_leaves_to_the_tree() {
        for event in
            ["", "2", "2[", "2[\"a", "2[\"a\"]", "2[\"a\",1]", "2[\"a\",\"b\"]x", "21[\"a\",\"b\"]", "2[\"a\",\"b\\"]
        {
            assert_eq!(read_event(event), None, "{event}");
        }
        assert_eq!(read_event(r#"2["connect","a"]"#), None);
    }
}
