//! That the rules see what they are for, on made-up sources.

use super::*;

const GOOD_PAGE: &str = "//! A room.\n//!\n//! What it is for: this.\n//! It uses that.\n//! What never \
                         happens here: more.\n";

fn all(path: &str, source: &str) -> Vec<Breach> {
    breaches(path, source).into_iter().collect()
}

fn sibling(room: &str) -> Breach {
    Breach::Sibling(room.to_owned())
}

fn upwards(room: &str) -> Breach {
    Breach::Upwards(room.to_owned())
}

#[test]
fn floors_beneath_and_the_own_room_are_free() {
    let source = "use crate::{base::Clock, model::{Row, Status}, policy};\nuse crate::store::Reader;\n\
                  use super::schema;\nuse std::run;\nfn f() { crate::base::x(); self::run(); cli::y() }";
    assert_eq!(all("store/reader.rs", source), []);
    assert_eq!(all("cli/commands/run.rs", "use crate::run::execute; use crate::store::Store;"), []);
}

#[test]
fn siblings_are_caught_wherever_they_are_named() {
    for source in [
        "use crate::output::Target;",
        "use crate::{\n    base::Clock,\n    output::{\n        Target,\n    },\n};",
        "use crate::{base, output};",
        "use {std::fmt, crate::output};",
        "fn f() -> Option<crate::output::Target> { None }",
        "fn f() { let _ = crate :: output :: name(); }",
        "pub(in crate::output) struct S;",
        "macro_rules! m { () => { $crate::output::f() } }",
        "fn f<'a>(x: &'a str) -> char { let _ = ('\\'', '\"', \"\\\"\", r#\"\"\"#); crate::output::f(x) }",
        "/* a /* nested */ comment */ use crate::output::Target; // and one more",
        "#[cfg(test)] mod tests { use crate::output::Target; }",
        "use super::super::output::Target;",
        "use super::super::{base, output};",
        "mod tests { use super::super::super::output::Target; }",
    ] {
        assert_eq!(all("store/reader.rs", source), [sibling("output")], "{source}");
    }
    assert_eq!(all("store/mod.rs", &format!("{GOOD_PAGE}use super::output;")), [sibling("output")]);
}

#[test]
fn imports_upwards_are_caught() {
    assert_eq!(all("base/clock.rs", "use crate::model::Row;"), [upwards("model")]);
    assert_eq!(
        all("policy/gate.rs", "use crate::{cli::Failure, run, store::Reader};"),
        [upwards("cli"), upwards("run"), upwards("store")]
    );
    assert_eq!(all("provider/openai/body.rs", "use super::super::super::run::Plan;"), [upwards("run")]);
}

#[test]
fn what_is_no_path_of_the_crate_is_left_alone() {
    for source in [
        "//! See [`crate::run`].\n/// And [`crate::cli::main`].\nstruct S;",
        "/* use crate::run::x; */",
        "const TEXT: &str = \"use crate::run::x\"; const RAW: &str = r##\"crate::run\"# \"##;",
        "use other::crate_run; fn run() {} fn f() { run(); super::run::g(); }",
        "mod tests { use super::super::run; }",
        "pub(crate) fn f(run: u8) -> u8 { run }",
    ] {
        assert_eq!(all("store/reader.rs", source), [], "{source}");
    }
}

#[test]
fn ways_around_are_caught() {
    for source in [
        "use crate::*;",
        "use crate::{base, *};",
        "use crate as house;",
        "use crate::{self as house};",
        "use crate::{base, self as house};",
    ] {
        let found = all("base/clock.rs", source);
        assert!(matches!(found.as_slice(), [Breach::Unbounded(_)]), "{source}: {found:?}");
    }
}

#[test]
fn folders_without_a_floor_and_stray_files_are_caught() {
    assert_eq!(all("utils/text.rs", "fn f() {}"), [Breach::NoFloor]);
    assert_eq!(all("stray.rs", "fn f() {}"), [Breach::OutsideOfRooms]);
    assert_eq!(all("lib.rs", "pub mod base; pub mod cli;"), []);
}

#[test]
fn long_files_are_caught() {
    assert_eq!(all("base/long.rs", &"\n".repeat(500)), []);
    assert_eq!(all("base/long.rs", &"\n".repeat(501)), [Breach::TooLong(501)]);
    assert_eq!(all("main.rs", &"\n".repeat(501)), [Breach::TooLong(501)]);
}

#[test]
fn code_in_a_page_is_caught() {
    let source = format!(
        "{GOOD_PAGE}\n#![expect(dead_code, reason = \"[x]\")]\nmod a;\n#[cfg(test)]\nmod tests;\npub mod b;\n\
         pub use a::{{A, B}};\npub(super) use b::c;\nuse crate::base::Clock;\n"
    );
    assert_eq!(all("store/mod.rs", &source), []);
    for code in [
        "fn f() {}",
        "pub(crate) struct S;",
        "mod tests { fn f() {} }",
        "const N: u8 = 1;",
        "impl A {}",
        "macro_rules! m { () => {} }",
    ] {
        let found = all("store/sub/mod.rs", &format!("{source}{code}\n"));
        assert!(matches!(found.as_slice(), [Breach::CodeInMod(_)]), "{code}: {found:?}");
    }
}

#[test]
fn pages_with_a_part_missing_are_caught() {
    for part in PAGE {
        let page = GOOD_PAGE.replace(part, "…");
        assert_eq!(all("store/mod.rs", &page), [Breach::NoPage(part)]);
        assert_eq!(all("store/sub/mod.rs", &page), [Breach::NoPage(part)]);
    }
    assert_eq!(all("store/mod.rs", &GOOD_PAGE.replace("//!", "//")).len(), PAGE.len());
}

#[test]
fn dependencies_and_reasons_are_read() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\n# a note = 1\na = \"1\"\nb-c.version = \"2\"\n\
                    d = { version = \"1\" }\n[dev-dependencies]\ne = \"1\"\n[target.'cfg(unix)'.dependencies]\n\
                    f = \"1\"\n[dependencies.g]\nversion = \"1\"\n[features]\nh = []\n";
    let names: Vec<String> = dependencies(manifest).into_iter().collect();
    assert_eq!(names, ["a", "b-c", "d", "e", "f", "g"]);
    let table = "| Crate | Why | Not |\n|---|---|---|\n| `a` | because | `z`: no |\n| `b` | because | |\n| c | d | e |\n";
    assert_eq!(reasons(table).into_iter().collect::<Vec<_>>(), ["a"]);
}
