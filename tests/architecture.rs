//! The house rules, read from the sources: floors, pages of rooms, the length of files, and the reason of each
//! dependency. `docs/architecture.md` says why they are rules.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

#[path = "architecture/tokens.rs"]
mod tokens;

#[path = "architecture/rules.rs"]
mod rules;

use tokens::{Token, tokens};

/// Which floor each room is on. A room uses any floor beneath its own, never a sibling, never a floor above.
const FLOORS: &[(&str, u8)] = &[
    ("base", 0),
    ("model", 1),
    ("policy", 2),
    ("answer", 3),
    ("dataset", 3),
    ("mock", 3),
    ("output", 3),
    ("prompt", 3),
    ("provider", 3),
    ("report", 3),
    ("store", 3),
    ("transport", 3),
    ("run", 4),
    ("cli", 5),
];

/// The files that stand outside of every room: the map and the binary.
const OUTSIDE: [&str; 2] = ["lib.rs", "main.rs"];

const LONGEST_FILE: usize = 500;

/// What the page of a room says.
const PAGE: [&str; 3] = ["What it is for:", "It uses", "What never happens"];

/// A rule that a file breaks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Breach {
    Sibling(String),
    Upwards(String),
    Unbounded(&'static str),
    NoFloor,
    OutsideOfRooms,
    TooLong(usize),
    CodeInMod(String),
    NoPage(&'static str),
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sibling(room) => write!(f, "uses `{room}`, a room on its own floor"),
            Self::Upwards(room) => write!(f, "uses `{room}`, a room on a floor above"),
            Self::Unbounded(what) => write!(f, "{what}, which could reach any room: name what is used"),
            Self::NoFloor => write!(f, "its folder has no floor: give it one in FLOORS and in src/lib.rs"),
            Self::OutsideOfRooms => write!(f, "stands in no room"),
            Self::TooLong(lines) => write!(f, "has {lines} lines, more than {LONGEST_FILE}"),
            Self::CodeInMod(what) => write!(f, "holds `{what}`: a mod.rs is a page, `mod` and `use` only"),
            Self::NoPage(part) => write!(f, "lacks `{part}` in its page"),
        }
    }
}

/// The breaches of one file, by its path beneath `src/`.
fn breaches(path: &str, source: &str) -> BTreeSet<Breach> {
    let mut found = BTreeSet::new();
    let lines = source.lines().count();
    if lines > LONGEST_FILE {
        found.insert(Breach::TooLong(lines));
    }
    let mut folders: Vec<&str> = path.split('/').collect();
    let file = folders.pop().unwrap_or_default();
    let Some(&room) = folders.first() else {
        if !OUTSIDE.contains(&file) {
            found.insert(Breach::OutsideOfRooms);
        }
        return found;
    };
    let Some(floor) = floor_of(room) else {
        found.insert(Breach::NoFloor);
        return found;
    };
    let tokens = tokens(source);
    if file == "mod.rs" {
        let page: String = source.lines().map_while(|line| line.strip_prefix("//!")).collect();
        found.extend(PAGE.into_iter().filter(|part| !page.contains(part)).map(Breach::NoPage));
        found.extend(first_code(&tokens).map(Breach::CodeInMod));
    } else {
        folders.push(file.trim_end_matches(".rs"));
    }
    for used in uses(&tokens, folders.len()) {
        match used {
            Used::Unbounded(what) => {
                found.insert(Breach::Unbounded(what));
            }
            Used::Name(name) if name != room => match floor_of(&name) {
                Some(other) if other > floor => {
                    found.insert(Breach::Upwards(name));
                }
                Some(other) if other == floor => {
                    found.insert(Breach::Sibling(name));
                }
                _ => {}
            },
            Used::Name(_) => {}
        }
    }
    found
}

fn floor_of(room: &str) -> Option<u8> {
    FLOORS.iter().find(|(name, _)| *name == room).map(|(_, floor)| *floor)
}

/// What stands first after the root of the crate in a path.
enum Used {
    Name(String),
    Unbounded(&'static str),
}

/// The names after `crate::`, also in groups, and after so many `super::` that they reach the root. `depth` is how
/// many modules lie between the root and the file's own content.
fn uses(tokens: &[Token], depth: usize) -> Vec<Used> {
    let mut found = Vec::new();
    let mut braces = 0;
    let mut inline = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let before = |back: usize| at.checked_sub(back).and_then(|at| tokens.get(at)).map(Token::text);
        match token.text() {
            "{" => {
                braces += 1;
                if before(2) == Some("mod") {
                    inline.push(braces);
                }
            }
            "}" => {
                if inline.last() == Some(&braces) {
                    inline.pop();
                }
                braces -= 1;
            }
            "crate" => found.extend(after_root(&tokens[at + 1..])),
            "super" if before(2) != Some("super") => {
                let rest = &tokens[at..];
                let ups = rest.chunks(2).take_while(|pair| pair[0].text() == "super").count();
                if ups == depth + inline.len() {
                    found.extend(after_root(rest.get(ups * 2 - 1..).unwrap_or_default()));
                }
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// What follows a path's root: `::name`, `::{a, b::c}`, `::*`, or `as name`.
fn after_root(rest: &[Token]) -> Vec<Used> {
    match rest {
        [Token::Word(word), ..] if word == "as" => vec![Used::Unbounded("renames the crate's root")],
        [colons, next, rest @ ..] if colons.text() == "::" => match next {
            Token::Word(name) => vec![Used::Name(name.clone())],
            next if next.text() == "*" => vec![Used::Unbounded("imports all of the crate's root")],
            next if next.text() == "{" => group(rest),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The first names of a group's members, after its opening brace.
fn group(rest: &[Token]) -> Vec<Used> {
    let mut found = Vec::new();
    let mut depth = 1;
    let mut begins = true;
    for (at, token) in rest.iter().enumerate() {
        if depth == 1 {
            let before = at.checked_sub(1).map(|before| rest[before].text());
            match token {
                Token::Word(name) if begins && name != "self" => found.push(Used::Name(name.clone())),
                token if begins && token.text() == "*" => {
                    found.push(Used::Unbounded("imports all of the crate's root"));
                }
                token if token.text() == "as" && before == Some("self") => {
                    found.push(Used::Unbounded("renames the crate's root"));
                }
                _ => {}
            }
        }
        begins = false;
        match token.text() {
            "{" => depth += 1,
            "}" => depth -= 1,
            "," => begins = depth == 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    found
}

/// The first thing in a `mod.rs` that is no attribute, `mod name;` or `use …;`.
fn first_code(tokens: &[Token]) -> Option<String> {
    let mut rest = tokens;
    while let Some(first) = rest.first() {
        match first.text() {
            "#" => {
                let open = rest.iter().position(|token| token.text() == "[")?;
                rest = after_matching(&rest[open..], "[", "]");
            }
            "pub" if rest.get(1).is_some_and(|token| token.text() == "(") => {
                rest = after_matching(&rest[1..], "(", ")");
            }
            "pub" => rest = &rest[1..],
            "mod" if rest.get(2).is_some_and(|token| token.text() == ";") => rest = &rest[3..],
            "use" => {
                let end = rest.iter().position(|token| token.text() == ";")?;
                rest = &rest[end + 1..];
            }
            _ => return Some(rest.iter().take(3).map(Token::text).collect::<Vec<_>>().join(" ")),
        }
    }
    None
}

fn after_matching<'a>(tokens: &'a [Token], open: &str, close: &str) -> &'a [Token] {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        if token.text() == open {
            depth += 1;
        } else if token.text() == close {
            depth -= 1;
            if depth == 0 {
                return &tokens[at + 1..];
            }
        }
    }
    &[]
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every source file, with its path beneath `folder`.
fn sources(folder: &Path) -> std::io::Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                found.push((name, std::fs::read_to_string(&path)?));
            }
        }
    }
    found.sort();
    Ok(found)
}

#[test]
fn the_house_stands() {
    let sources = sources(&root().join("src")).unwrap();
    assert!(sources.len() > 100, "only {} sources were found", sources.len());
    let found: Vec<String> = sources
        .iter()
        .flat_map(|(path, source)| {
            breaches(path, source).into_iter().map(move |breach| format!("src/{path} {breach}"))
        })
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_floor_has_its_rooms() {
    for (room, floor) in FLOORS {
        assert!(
            root().join("src").join(room).join("mod.rs").is_file(),
            "{room} on floor {floor} has no page"
        );
    }
    let map = std::fs::read_to_string(root().join("src/lib.rs")).unwrap();
    for (room, floor) in FLOORS {
        let line = map.lines().find(|line| line.contains(&format!("[`{room}`]")));
        assert!(
            line.is_some_and(|line| line.starts_with(&format!("//! | {floor} |"))),
            "{room} in src/lib.rs"
        );
    }
}

#[test]
fn every_dependency_has_a_reason() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let record = std::fs::read_to_string(root().join("docs/decisions/0001-dependencies.md")).unwrap();
    let (wanted, reasoned) = (dependencies(&manifest), reasons(&record));
    assert!(wanted.len() > 20, "only {} dependencies were read", wanted.len());
    assert_eq!(reasoned, wanted, "left: the table of docs/decisions/0001-dependencies.md; right: Cargo.toml");
}

/// The names in the dependency tables of a manifest.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut inside = false;
    let mut found = BTreeSet::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(table) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            inside = table.ends_with("dependencies");
            if let Some((section, name)) = table.rsplit_once('.')
                && section.ends_with("dependencies")
            {
                found.insert(name.to_owned());
            }
        } else if inside && let Some((name, _)) = line.split_once(['=', '.']) {
            found.insert(name.trim().trim_matches('"').to_owned());
        }
    }
    found.retain(|name| !name.starts_with('#'));
    found
}

/// The crates that the table gives a reason for and a runner-up, each in code quotes in the first column.
fn reasons(record: &str) -> BTreeSet<String> {
    record
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> =
                line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
            let full = cells.len() == 3 && cells.iter().all(|cell| cell.len() > 1);
            Some(cells.first()?.strip_prefix('`')?.strip_suffix('`')?.to_owned()).filter(|_| full)
        })
        .collect()
}
