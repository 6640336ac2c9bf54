//! The small commands: `init`, `completions`, `man`, and what the help says.

mod support;

use support::command::Verify;

#[test]
fn a_first_project_runs_as_it_is() {
    let made = Verify::new().args(["init"]).run().expect_code(0);
    assert_eq!(made.stdout, "next: verify run input.csv\n");
    made.again().args(["check", "input.csv"]).run().expect_code(0);
    let outcome = made.again().args(["run", "input.csv"]).run().expect_code(0);
    let output = outcome.file("input.verified.csv");
    assert!(output.starts_with("product,review,sentiment,about,confidence,verify_status"), "{output}");
    assert_eq!(output.matches(",pass,valid,").count(), 5);

    let refused = made.again().args(["init"]).run().expect_code(2);
    assert_eq!(refused.stderr.matches("is not overwritten").count(), 3, "{}", refused.stderr);

    let other = made.again().args(["init", "my project"]).run().expect_code(0);
    assert_eq!(other.stdout, "next: verify run 'my project/input.csv'\n");
    let outcome = other.again().args(["run", "my project/input.csv"]).run().expect_code(0);
    assert!(outcome.stderr.contains("configuration: my project/verify.toml"), "{}", outcome.stderr);
    assert!(outcome.path("my project/.verify/store.db").exists());
}

#[test]
fn one_file_in_the_way_keeps_all_from_being_written() {
    let outcome = Verify::new().file("schema.json", "mine").args(["init"]).run().expect_code(2);
    assert!(outcome.stderr.contains("schema.json is there already"), "{}", outcome.stderr);
    assert_eq!(outcome.file("schema.json"), "mine");
    assert!(!outcome.path("verify.toml").exists() && !outcome.path("input.csv").exists());
}

#[test]
fn completions_know_commands_and_flags() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = Verify::new().args(["completions", shell]).run().expect_code(0).stdout;
        assert!(text.contains("max-output-tokens") && text.contains("export"), "{shell}");
    }
    let refused = Verify::new().args(["completions", "csh"]).run().expect_code(2);
    assert!(refused.stderr.contains("bash"), "{}", refused.stderr);
}

#[test]
fn the_manual_has_a_page_for_the_program_and_one_for_each_command() {
    let page = Verify::new().args(["man"]).run().expect_code(0).stdout;
    assert!(page.contains(".TH verify 1") && page.contains("completions"), "{page}");
    let page = Verify::new().args(["man", "run"]).run().expect_code(0).stdout;
    assert!(page.contains("verify\\-run") && page.contains("\\-\\-concurrency"), "{page}");
    Verify::new().args(["man", "nothing"]).run().expect_code(2);
}

#[test]
fn every_command_explains_itself_with_an_example() {
    let help = Verify::new().args(["--help"]).run().expect_code(0).stdout;
    let commands: Vec<&str> = help
        .split("Commands:")
        .nth(1)
        .and_then(|rest| rest.split("\n\n").next())
        .unwrap()
        .lines()
        // A line that goes on with an explanation is indented further.
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty() && *name != "help")
        .collect();
    assert!(commands.len() >= 10, "{commands:?}");
    let nested = ["runs rm", "review list", "review export", "review import"];
    for command in commands.into_iter().chain(nested) {
        let line = command.split(' ').chain(["--help"]);
        let help = Verify::new().args(line).run().expect_code(0).stdout;
        let places = ["\nExample", "\nUsage: ", "\nOptions:"].map(|part| help.find(part));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{command}: {help}");
        let wide = help.lines().find(|line| line.chars().count() > 80);
        assert_eq!(wide, None, "{command}");
    }
}
