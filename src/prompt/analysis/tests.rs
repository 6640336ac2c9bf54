//! Which fields a template needs, and what it may not do.

use super::*;
use crate::prompt::Template;

fn required(source: &str) -> Vec<String> {
    let template = Template::compile(None, source).unwrap_or_else(|error| panic!("{source}: {error}"));
    template.required_fields().iter().map(ToString::to_string).collect()
}

fn refused(source: &str) -> String {
    Template::compile(None, source).unwrap_err().to_string()
}

#[test]
fn fields_are_those_that_the_record_must_have() {
    for (source, fields) in [
        ("no fields", vec![]),
        ("{{ a }} {{ b|upper }} {{ a }}", vec!["a", "b"]),
        ("{{ user.address.street }}", vec!["user.address.street"]),
        (
            r#"{{ row["odd name"] }} {{ row.x }} {{ row['row'] }}"#,
            vec![r#"row["odd name"]"#, "x", r#"row["row"]"#],
        ),
        ("{{ row }} {% for name in row %}{{ name }}{{ row[name] }}{% endfor %}", vec![]),
        ("{{ tags[0].name }} {{ tags.1 }} {{ tags[-1] }}", vec!["tags[0].name", "tags[1]", "tags[-1]"]),
        ("{{ a[b] }}", vec!["a", "b"]),
        (
            "{% for item in items %}{{ item.x }}{{ loop.index }}{{ y }}{% else %}{{ z }}{% endfor %}",
            vec!["items", "y", "z"],
        ),
        ("{% set x = a %}{{ x.b }}{% set x = x|trim %}{{ x }}", vec!["a"]),
        ("{% with x = a, y = x %}{{ x }}{{ y }}{% endwith %}{{ y }}", vec!["a", "y"]),
        ("{% set b %}{{ a }}{% endset %}{{ b }}", vec!["a"]),
        ("{% macro m(x) %}{{ x }}{{ c }}{% endmacro %}{{ m(a) }}", vec!["c", "a"]),
        ("{% filter upper %}{{ a }}{% endfilter %}", vec!["a"]),
        ("{{ range(3) }}{{ dict(a=b) }}", vec!["b"]),
        ("{{ a.items() }}", vec!["a"]),
        ("{{ a[b:c] }} {{ [d, {'k': e}] }} {{ -f }}", vec!["a", "b", "c", "d", "e", "f"]),
        ("{{ a if b else c }}", vec!["b", "a", "c"]),
        ("{% if a == 'x' and b in c %}{{ d }}{% endif %}", vec!["a", "b", "c", "d"]),
    ] {
        assert_eq!(required(source), fields, "{source}");
    }
}

#[test]
fn what_is_asked_for_is_not_required() {
    for (source, fields) in [
        ("{{ a|default('-') }} {{ b.c|d('-') }} {{ e }}", vec!["e"]),
        ("{% if a is defined %}{{ a }} {{ a.b }}{% else %}{{ c }}{% endif %}", vec!["c"]),
        ("{% if a is undefined %}none{% else %}{{ a }}{% endif %}", vec![]),
        ("{% if a is not defined %}none{% else %}{{ a }}{% endif %}", vec![]),
        ("{% if a is defined and a == 'x' %}{{ a }}{% endif %}", vec![]),
        ("{{ a if a is defined else 'none' }}", vec![]),
        ("{% if a is undefined or a == '' %}none{% else %}{{ a }}{% endif %}", vec![]),
        ("{% if 'odd name' in row %}{{ row['odd name'] }}{% endif %}", vec![]),
        ("{% if a is defined %}x{% endif %}{{ a }}", vec!["a"]),
        ("{{ a|default(b) }}", vec!["b"]),
        ("{{ a|trim|default('-') }}", vec!["a"]),
    ] {
        assert_eq!(required(source), fields, "{source}");
    }
}

#[test]
fn errors_show_their_place() {
    let error = refused("Classify\n  {{ text }\nnow");
    assert!(error.starts_with("prompt.user, line 2: "), "{error}");
    assert!(error.contains("\n    {{ text }\n"), "{error}");
    assert!(error.ends_with('^'), "{error}");
    let error = refused("{% if a %}");
    assert!(error.contains("line 1"), "{error}");
    assert!(refused("{{ Größe }}").contains("row["), "{}", refused("{{ Größe }}"));
    let error = Template::compile(Some("{{"), "x").unwrap_err().to_string();
    assert!(error.starts_with("prompt.system"), "{error}");
}

#[test]
fn a_template_reads_no_other_one_and_uses_what_exists() {
    for (source, why) in [
        ("{% include '/etc/passwd' %}", "include"),
        ("{% extends 'x' %}", "extend"),
        ("{% import 'x' as y %}", "import"),
        ("{% from 'x' import y %}", "import"),
        ("a\n{{ a|nofilter }}", "line 2: there is no filter `nofilter`"),
        ("{{ a is notest }}", "there is no test `notest`"),
        ("{{ debug() }}", "there is no function `debug`"),
        ("{{ open('x') }}", "there is no function `open`"),
    ] {
        let error = refused(source);
        assert!(error.contains(why), "{source}: {error}");
    }
}

#[test]
fn operands_are_wrapped_where_they_stand() {
    let mut engine = Engine::new();
    for (source, expected) in [
        ("{% if a > 5 %}{% endif %}", "{% if ((a)|F) > 5 %}{% endif %}"),
        ("{{ a.b['x'] == c }}", "{{ ((a.b['x'])|F) == ((c)|F) }}"),
        ("{{ (a or b).x > 1 }}", "{{ (((a or b).x)|F) > 1 }}"),
        ("{{ ( (a).b ) + 1 }}", "{{ ( (((a).b)|F) ) + 1 }}"),
        ("{{ a|int > 5 and b|float < 1 }}", "{{ a|int > 5 and b|float < 1 }}"),
        ("{{ a|default(0) > 5 }}", "{{ ((a)|F)|default(0) > 5 }}"),
        ("{{ (a if b else c) > 5 }}", "{{ (((a)|F) if b else ((c)|F)) > 5 }}"),
        ("{{ a|first < 5 }}", "{{ ((a|first)|F) < 5 }}"),
        ("{{ 1 < a < 5 }}", "{{ 1 < ((a)|F) < 5 }}"),
        ("{{ a + b * 2 }}", "{{ ((a)|F) + ((b)|F) * 2 }}"),
        ("{{ -a }}", "{{ -((a)|F) }}"),
        ("{{ 'x' in tags }}", "{{ 'x' in tags }}"),
        ("{{ a not in [1] }}", "{{ ((a)|F) not in [1] }}"),
        (
            "{{ loop }}{% for x in y if x.n > 1 %}{{ loop.index > 1 }}{% endfor %}",
            "{{ loop }}{% for x in y if ((x.n)|F) > 1 %}{{ loop.index > 1 }}{% endfor %}",
        ),
        ("{{ a ~ ')' ~ b.c }}", "{{ ((a)|T) ~ ')' ~ ((b.c)|T) }}"),
        ("{{ a.b.c|default('x') }}", "{{ ((((a)|S).b)|S).c|default('x') }}"),
        ("{{ f(')').x == 1 }}{% macro f(x) %}{% endmacro %}", ""),
    ] {
        let Ok(analysis) = analyse("user", source, &mut engine) else {
            assert_eq!(expected, "", "{source}");
            continue;
        };
        let mut edited = analysis.source.replace("verify_text", "T").replace("verify_soft", "S");
        while let Some(at) = edited.find("verify_operand_") {
            let rest = &edited[at + "verify_operand_".len()..];
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            edited = format!("{}F{}", &edited[..at], &rest[digits..]);
        }
        assert_eq!(edited, expected, "{source}");
    }
}
