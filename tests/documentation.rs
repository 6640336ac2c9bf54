//! The manual says what the program does: keys, flags and defaults, the configuration that it shows, the commands.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use support::command::Verify;

const CONFIGURATION: &str = include_str!("../docs/configuration.md");
const README: &str = include_str!("../README.md");
const REVIEWS: &str = include_str!("../fixtures/datasets/reviews/reviews.csv");

/// The rows of all tables under a heading, without the heads; code quotes stay.
fn table<'a>(text: &'a str, heading: &str) -> Vec<Vec<&'a str>> {
    let section = text.split("\n## ").find(|section| section.starts_with(heading)).unwrap_or_default();
    let mut rows = section.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix('|'));
    rows.next();
    rows.map(|line| line.split('|').map(str::trim).collect()).collect()
}

/// The first text in code quotes.
fn code(cell: &str) -> Option<&str> {
    cell.split('`').nth(1)
}

/// Long flags of `verify run --help`, with the default that it names, if it names one.
fn flags() -> BTreeMap<String, Option<String>> {
    let help = Verify::new().args(["run", "--help"]).run().expect_code(0).stdout;
    let options = help.split("\nUsage: ").nth(1).unwrap_or_default();
    let mut found: BTreeMap<String, Option<String>> = BTreeMap::new();
    // A flag's text goes on to the next flag.
    let mut starts: Vec<usize> = options.match_indices("\n      --").map(|(at, _)| at + 7).collect();
    starts.extend(options.match_indices(", --").map(|(at, _)| at + 2));
    starts.sort_unstable();
    for (at, start) in starts.iter().enumerate() {
        let end = starts.get(at + 1).copied().unwrap_or(options.len());
        let text = options[*start..end].split_whitespace().collect::<Vec<_>>().join(" ");
        let name = text.split([' ', '[', '=']).next().unwrap_or_default().to_owned();
        let default = text.split_once("[default: ").and_then(|(_, rest)| rest.split(']').next());
        found.insert(name, default.map(str::to_owned));
    }
    found
}

#[test]
fn every_flag_is_in_the_manual_and_every_flag_of_the_manual_is_there() {
    let known = flags();
    assert!(known.len() > 60, "{known:?}");
    let keys = table(CONFIGURATION, "Keys");
    let tables = table(CONFIGURATION, "Tables of the file");
    let others = table(CONFIGURATION, "Flags without a key");
    let documented: BTreeSet<&str> = keys
        .iter()
        .chain(&tables)
        .filter_map(|row| code(row[1]))
        .chain(others.iter().filter_map(|row| code(row[0])))
        .collect();
    assert_eq!(documented, known.keys().map(String::as_str).collect());

    let defaults = keys.iter().map(|row| (row[1], row[3])).chain(others.iter().map(|row| (row[0], row[1])));
    for (flag, default) in defaults {
        let flag = code(flag).unwrap();
        let Some(default) = code(default) else { continue };
        let said = known[flag].as_deref().unwrap_or_default();
        assert!(said == default || said.starts_with(&format!("{default},")), "{flag}: {default}, but {said}");
    }
}

#[test]
fn every_variable_is_the_name_of_its_key() {
    for row in table(CONFIGURATION, "Keys") {
        let key = code(row[0]).unwrap();
        let variable = format!("VERIFY_{}", key.replace('.', "_").to_uppercase());
        assert_eq!(code(row[2]), Some(variable.as_str()), "{key}");
    }
}

/// The documented defaults, written out as flags, as variables or in a file, are the same as nothing.
#[test]
fn documented_defaults_change_nothing() {
    let bare = Verify::new()
        .file("in.csv", "text\none\ntwo\n")
        .args(["run", "in.csv", "--provider", "mock", "--prompt", "Is {{ text }} a number?"])
        .args(["--column", "ok=boolean", "--verdict", "ok", "--max-fail", "any", "-o", "a.csv"])
        .run()
        .expect_code(0);
    let keys = table(CONFIGURATION, "Keys");
    let defaults: Vec<(&str, &str, &str)> = keys
        .iter()
        .filter_map(|row| Some((code(row[1])?, code(row[2])?, code(row[3])?)))
        .filter(|(flag, ..)| *flag != "--max-fail")
        .collect();
    assert!(defaults.len() > 20);
    let same = |flags: Vec<String>, variables: &[(&str, &str)]| {
        let call = bare
            .again()
            .args(["run", "in.csv", "--provider", "mock", "--prompt", "Is {{ text }} a number?"])
            .args(["--column", "ok=boolean", "--verdict", "ok", "--max-fail", "any", "-o", "b.csv"])
            .args(flags);
        let call = variables.iter().fold(call, |call, (name, value)| call.env(name, value));
        let outcome = call.run().expect_code(0);
        assert!(!outcome.stderr.contains("is not known"), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("requests  0 sent"), "{}", outcome.stderr);
        let statuses = |name: &str| -> Vec<String> {
            outcome
                .file(name)
                .lines()
                .map(|line| line.split(",,").next().unwrap_or(line).to_owned())
                .collect()
        };
        assert_eq!(statuses("a.csv"), statuses("b.csv"));
    };
    same(defaults.iter().map(|(flag, _, default)| format!("{flag}={default}")).collect(), &[]);
    let variables: Vec<(&str, &str)> = defaults.iter().map(|(_, name, default)| (*name, *default)).collect();
    same(Vec::new(), &variables);
}

/// The blocks of README that are fenced with this word.
fn blocks(language: &str) -> Vec<&'static str> {
    README
        .split("\n```")
        .skip(1)
        .step_by(2)
        .filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n'))
        .collect()
}

#[test]
fn the_first_two_commands_are_a_run_and_the_tests() {
    let commands: Vec<&str> = blocks("sh").into_iter().flat_map(str::lines).take(2).collect();
    let arguments = commands[0].strip_prefix("cargo run --release -- ").unwrap();
    assert_eq!(commands[1], "cargo test");
    let ci = include_str!("../.ci/run");
    assert!(ci.lines().any(|line| line.trim().ends_with("cargo test")), "{ci}");

    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let words: Vec<String> = arguments
        .split(' ')
        .map(|word| if word.contains('/') { root.join(word).display().to_string() } else { word.to_owned() })
        .collect();
    // The output and the state go elsewhere: a test leaves the sources alone.
    let outcome = Verify::new().args(words).args(["-o", "out.csv", "--state", "state"]).run().expect_code(0);
    for word in ["pass", "fail", "review", "error", "skipped", "exit      0"] {
        assert!(outcome.stderr.contains(word), "{}", outcome.stderr);
    }
    assert!(outcome.file("out.csv").starts_with("id,product,stars,review,label,label_fits,"));
}

#[test]
fn the_configuration_in_readme_works() {
    let configurations = blocks("toml");
    assert!(!configurations.is_empty());
    for toml in configurations {
        let outcome = Verify::new()
            .file("reviews.csv", REVIEWS)
            .config(toml)
            .args(["run", "reviews.csv", "--provider", "mock", "--max-fail", "any", "--max-review", "any"])
            .run()
            .expect_code(0);
        assert_eq!(outcome.output_lines("reviews.verified.csv")[0].matches("verify_").count(), 6);
    }
}

#[test]
fn exit_codes_are_those_of_the_help() {
    let page = include_str!("../docs/exit-codes.md");
    let help = Verify::new().args(["run", "--help"]).run().expect_code(0).stdout;
    let said = help.split("Exit codes:").nth(1).unwrap();
    for row in table(page, "Codes") {
        let number = code(row[0]).unwrap();
        assert!(said.split(|c: char| !c.is_ascii_digit()).any(|word| word == number), "{number} in {said}");
    }
    assert!(table(page, "Codes").len() >= 11);
}

/// What a page links to, and the sources that it names.
fn references(page: &str) -> BTreeSet<&str> {
    let links = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let links = links.map(|link| link.split('#').next().unwrap_or(link));
    let named = page.split('`').skip(1).step_by(2);
    links
        .filter(|link| !link.contains(':') && !link.is_empty())
        .chain(named.filter(|name| ["src/", "docs/", "tests/"].iter().any(|folder| name.starts_with(folder))))
        .collect()
}

#[test]
fn pages_refer_to_what_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![root.join("README.md"), root.join("CHANGELOG.md")];
    for folder in ["docs", "docs/decisions"] {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        pages.extend(
            entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension() == Some("md".as_ref())),
        );
    }
    let mut lost = Vec::new();
    for page in &pages {
        let text = std::fs::read_to_string(page).unwrap();
        for reference in references(&text) {
            let beside = page.parent().unwrap_or(root).join(reference);
            let found = beside.exists() || root.join(reference).exists();
            if !found {
                lost.push(format!("{}: {reference}", page.display()));
            }
        }
    }
    assert!(pages.len() > 10 && lost.is_empty(), "{lost:#?}");
}
