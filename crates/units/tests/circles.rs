//! No two files of a crate use each other, directly or through others: paths are followed to the defining file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module path from the crate's root.
type Name = Vec<String>;

/// A crate's modules with a file each.
#[derive(Default)]
struct Crate {
    files: BTreeMap<Name, File>,
}

/// A file without its tests.
#[derive(Default)]
struct File {
    /// Its names for other files' items; none for other crates.
    aliases: BTreeMap<String, Option<Name>>,
    /// Every path in it.
    names: Vec<Name>,
}

impl Crate {
    fn read(sources: &Path) -> Self {
        let mut all = Self::default();
        all.add(sources, &sources.join("lib.rs"), Vec::new());
        all
    }

    fn add(&mut self, folder: &Path, file: &Path, module: Name) {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut reader =
            Reader { tokens: without_tests(&tokens(&text)), at: 0, module: module.clone(), ..Reader::default() };
        reader.read();
        for name in &reader.modules {
            let inner = [module.clone(), vec![name.clone()]].concat();
            let [alone, own] = [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")];
            self.add(&folder.join(name), if alone.exists() { &alone } else { &own }, inner);
        }
        self.files.insert(module, reader.file);
    }

    /// The file defining `name`, if in this crate; none for a module itself.
    fn file_of(&self, name: &[String]) -> Option<&Name> {
        let (module, file) = (0..=name.len()).rev().find_map(|length| self.files.get_key_value(&name[..length]))?;
        let (item, rest) = name[module.len()..].split_first()?;
        match file.aliases.get(item) {
            Some(None) => None,
            Some(Some(alias)) if !name.starts_with(alias) => self.file_of(&[alias, rest].concat()),
            _ => Some(module),
        }
    }

    /// Each file's uses of others.
    fn uses(&self) -> BTreeMap<&Name, BTreeSet<&Name>> {
        let used = |module: &Name, file: &File| {
            let used = file.names.iter().filter_map(|name| self.file_of(name)).filter(|used| *used != module);
            used.collect()
        };
        self.files.iter().map(|(module, file)| (module, used(module, file))).collect()
    }

    /// Every circle: files using each other, directly or through others.
    fn circles(&self) -> BTreeSet<Vec<String>> {
        let uses = self.uses();
        let reached: BTreeMap<&Name, BTreeSet<&Name>> =
            uses.keys().map(|module| (*module, reached(&uses, module))).collect();
        let circle = |module: &Name| {
            let others = || reached[module].iter().filter(|other| reached[**other].contains(module));
            let called = |name: &Name| if name.is_empty() { "lib".to_owned() } else { name.join("/") };
            let uses = |other: &Name| {
                others().filter(|used| uses[other].contains(*used)).map(|used| called(used)).collect::<Vec<_>>()
            };
            others().map(|other| format!("{} uses {}", called(other), uses(other).join(" "))).collect::<Vec<_>>()
        };
        reached.keys().map(|module| circle(module)).filter(|circle| !circle.is_empty()).collect()
    }
}

/// A file's uses, directly and through others.
fn reached<'a>(uses: &BTreeMap<&'a Name, BTreeSet<&'a Name>>, from: &'a Name) -> BTreeSet<&'a Name> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        open.extend(uses[module].iter().filter(|used| reached.insert(**used)));
    }
    reached
}

/// Rust's words and signs, without comments and strings.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let end = |of: &str, after: usize| rest[after..].find(of).map_or(rest.len(), |found| after + found + of.len());
        let length = if rest.starts_with("//") {
            end("\n", 2)
        } else if rest.starts_with("/*") {
            end("*/", 2)
        } else if word > 0 && rest[word..].starts_with(['"', '#']) && matches!(&rest[..word], "r" | "br") {
            let hashes = &rest[word..][..rest[word..].find('"').unwrap_or_default()];
            end(&format!("\"{hashes}"), word + hashes.len() + 1)
        } else if first == '"' || rest.starts_with("'\\") {
            let mut escaped = false;
            let closes = |c: char| {
                let closes = c == first && !escaped;
                escaped = c == '\\' && !escaped;
                closes
            };
            1 + rest[1..].find(closes).unwrap_or_default() + 1
        } else if first == '\'' && rest.chars().nth(2) == Some('\'') {
            2 + rest[1..].chars().next().map_or(0, char::len_utf8)
        } else if word > 0 {
            tokens.push(rest[..word].to_owned());
            word
        } else if rest.starts_with("::") {
            tokens.push("::".to_owned());
            2
        } else {
            tokens.extend((!first.is_whitespace()).then(|| first.to_string()));
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    tokens
}

fn without_tests(tokens: &[String]) -> Vec<String> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if !tokens[at..].iter().take(MARK.len()).eq(MARK) {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        let mut depth = 0;
        loop {
            let token = tokens[at].as_str();
            depth += i32::from(matches!(token, "{" | "(" | "[")) - i32::from(matches!(token, "}" | ")" | "]"));
            at += 1;
            if depth == 0 && matches!(token, ";" | "}") {
                break;
            }
        }
    }
    kept
}

#[derive(Default)]
struct Reader {
    tokens: Vec<String>,
    at: usize,
    depth: usize,
    /// The current module: the file's, then inline ones, each with the depth at its end.
    module: Name,
    inside: Vec<usize>,
    /// The modules with files of their own.
    modules: Vec<String>,
    file: File,
}

impl Reader {
    fn token(&self, ahead: usize) -> &str {
        self.tokens.get(self.at + ahead).map_or("", String::as_str)
    }

    fn read(&mut self) {
        let mods = self.tokens.windows(3).filter(|it| it[0] == "mod" && it[2] == ";");
        self.modules = mods.map(|it| it[1].clone()).collect();
        // First aliases, then names.
        for only_aliases in [true, false] {
            (self.at, self.depth) = (0, 0);
            while self.at < self.tokens.len() {
                match self.token(0) {
                    "{" => self.depth += 1,
                    "}" => {
                        self.depth -= 1;
                        if self.inside.last() == Some(&self.depth) {
                            self.inside.pop();
                            self.module.pop();
                        }
                    }
                    "mod" if self.token(2) == "{" => {
                        self.module.push(self.token(1).to_owned());
                        self.inside.push(self.depth);
                        self.at += 1;
                    }
                    "use" => {
                        self.at += 1;
                        self.tree(Vec::new(), only_aliases);
                    }
                    word if !only_aliases && self.token(1) == "::" && is_name(word) => {
                        let before = self.at.checked_sub(1).map(|before| self.tokens[before].as_str());
                        let mut name = vec![word.to_owned()];
                        while self.token(1) == "::" && is_name(self.token(2)) {
                            name.push(self.token(2).to_owned());
                            self.at += 2;
                        }
                        if before != Some("::") {
                            self.file.names.extend(self.absolute(&name));
                        }
                    }
                    _ => {}
                }
                self.at += 1;
            }
        }
    }

    /// Reads a `use` up to the sign behind it.
    fn tree(&mut self, mut name: Name, only_aliases: bool) {
        loop {
            match self.token(0).to_owned().as_str() {
                "::" => {}
                "{" => {
                    self.at += 1;
                    while self.token(0) != "}" {
                        self.tree(name.clone(), only_aliases);
                        self.at += usize::from(self.token(0) == ",");
                    }
                    self.at += 1;
                    return;
                }
                "*" => {
                    self.at += 1;
                    return;
                }
                "self" if !name.is_empty() => {}
                word => name.push(word.to_owned()),
            }
            self.at += 1;
            if matches!(self.token(0), "," | ";" | "}" | "as") {
                break;
            }
        }
        let mut alias = name.last().cloned().unwrap_or_default();
        if self.token(0) == "as" {
            self.token(1).clone_into(&mut alias);
            self.at += 2;
        }
        let whole = self.absolute(&name);
        if !only_aliases {
            self.file.names.extend(whole);
        } else if whole.is_some() || self.depth == 0 {
            self.file.aliases.insert(alias, whole);
        }
    }

    /// `name` from the crate's root; none for other crates and for this file's items.
    fn absolute(&self, name: &[String]) -> Option<Name> {
        let (first, mut rest) = name.split_first()?;
        let mut base = match first.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => self.module.clone(),
            word if self.modules.iter().any(|module| module == word) => {
                [self.module.clone(), vec![first.clone()]].concat()
            }
            word => self.file.aliases.get(word)?.clone()?,
        };
        if first == "super" {
            base.pop();
            while rest.first().is_some_and(|next| next == "super") {
                base.pop();
                rest = &rest[1..];
            }
        }
        Some([base, rest.to_vec()].concat())
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

#[test]
fn no_two_files_of_a_crate_use_each_other() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut circles = Vec::new();
    for entry in fs::read_dir(crates).expect("crates") {
        let sources = entry.expect("a crate").path().join("src");
        let own = Crate::read(&sources).circles().into_iter();
        circles.extend(own.map(|circle| format!("{}: {}", sources.display(), circle.join("; "))));
    }
    assert!(circles.is_empty(), "{}", circles.join("\n"));
}

#[test]
fn circles_are_found_through_what_is_exported_again_and_not_through_tests() {
    let sources = Path::new(env!("CARGO_TARGET_TMPDIR")).join("circles");
    fs::create_dir_all(sources.join("b")).expect("a directory");
    let circles = |a: &str| {
        let b = "mod deep;\npub use deep::B;\nuse super::a;\npub fn b() -> a::A { \"crate::b::B\"; a::A }";
        for (file, text) in
            [("lib", "mod a;\nmod b;\npub use b::B;"), ("a", a), ("b/mod", b), ("b/deep", "pub struct B;")]
        {
            fs::write(sources.join(file).with_extension("rs"), text).expect("written");
        }
        Crate::read(&sources).circles()
    };
    let own = "pub struct A; // crate::b::b\n";
    assert!(circles(own).is_empty());
    assert!(circles(&format!("{own}use crate::B;")).is_empty(), "it is another file's");
    assert!(circles(&format!("{own}#[cfg(test)]\nmod tests {{ use crate::b::b; }}")).is_empty());
    let circle = ["a uses b", "b uses a"].map(str::to_owned).to_vec();
    for used in ["use crate::b::{B, b};", "use super::b as other; fn a() { other::b() }", "fn a() { crate::b::b() }"] {
        assert_eq!(circles(&format!("{own}{used}")), BTreeSet::from([circle.clone()]), "{used}");
    }
}
