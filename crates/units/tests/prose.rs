//! Comments in the field's words: how many relative pronouns and "of" per 1,000 words each crate may have.
//!
//! Where the field has a noun, neither is needed. Code in backticks and code blocks are not counted.

use std::fs;
use std::path::{Path, PathBuf};

const PRONOUNS: [&str; 5] = ["that", "which", "what", "who", "whose"];

/// Sources, then the most pronouns and the most "of" per 1,000 words. Lower a limit if possible; raise none.
const LIMITS: [(&str, usize, usize); 17] = [
    ("crates/attribution", 10, 23),
    ("crates/cell", 16, 34),
    ("crates/vt-forwarder", 3, 19),
    ("crates/host", 10, 20),
    ("crates/noop-derive", 0, 44),
    ("crates/ledger", 13, 24),
    ("crates/netem", 22, 28),
    ("crates/packet", 2, 22),
    ("crates/path", 12, 31),
    ("crates/settings", 17, 39),
    ("crates/socketio", 8, 17),
    ("crates/transport", 6, 15),
    ("crates/units", 4, 20),
    ("crates/quic-decrypt", 9, 20),
    ("crates/workload", 12, 27),
    ("fuzz", 6, 16),
    ("kernel/path", 4, 21),
];

#[derive(Default)]
struct Count {
    words: usize,
    pronouns: usize,
    ofs: usize,
}

impl Count {
    fn add_file(&mut self, text: &str) {
        let mut in_code = false;
        for comment in text.lines().filter_map(comment) {
            let is_fence = comment.trim_start().starts_with("```");
            in_code ^= is_fence;
            if !in_code && !is_fence {
                // Every second piece is code.
                comment.split('`').step_by(2).for_each(|prose| self.add(prose));
            }
        }
    }

    fn add(&mut self, prose: &str) {
        let is_letter = |c: char| c.is_ascii_alphabetic() || c == '\'' || c == '-';
        for word in prose.split(|c| !is_letter(c)).filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic())) {
            let word = word.to_ascii_lowercase();
            self.words += 1;
            self.pronouns += usize::from(PRONOUNS.contains(&word.as_str()));
            self.ofs += usize::from(word == "of");
        }
    }

    fn per_thousand(&self) -> (usize, usize) {
        let of_words = |count: usize| (count * 1000).div_ceil(self.words.max(1));
        (of_words(self.pronouns), of_words(self.ofs))
    }
}

/// The comment on a line, without its slashes; none in a string.
fn comment(line: &str) -> Option<&str> {
    let start = if line.trim_start().starts_with("//") { line.find("//")? } else { line.find(" // ")? + 1 };
    let is_in_string = line[..start].matches('"').count() % 2 == 1;
    (!is_in_string).then(|| line[start..].trim_start_matches(['/', '!']))
}

/// The Rust files below `folder`, without build output.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())).flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

#[test]
fn comments_of_each_crate_keep_to_their_limits() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut unlimited: Vec<_> = fs::read_dir(root.join("crates")).expect("crates").flatten().collect();
    unlimited.retain(|entry| !LIMITS.iter().any(|(name, ..)| root.join(name) == entry.path()));
    assert!(unlimited.is_empty(), "no limits for {unlimited:?}");
    let mut above = Vec::new();
    for (name, pronouns, ofs) in LIMITS {
        let mut count = Count::default();
        for path in sources(&root.join(name)) {
            count.add_file(&fs::read_to_string(path).expect("a source"));
        }
        let counted = count.per_thousand();
        if counted.0 > pronouns || counted.1 > ofs {
            above.push(format!("{name}: {} and {} per 1,000 words, limits {pronouns} and {ofs}", counted.0, counted.1));
        }
    }
    assert!(above.is_empty(), "relative pronouns and \"of\" in comments, use nouns:\n{}", above.join("\n"));
}

#[test]
fn code_and_strings_are_not_counted() {
    let mut count = Count::default();
    count.add_file(
        "/// `that` of\n/// ```\n/// which\n/// ```\nlet x = \" // who\";\nlet y; // Whose own\n//! what's-it",
    );
    assert_eq!((count.words, count.pronouns, count.ofs), (4, 1, 1));
}
