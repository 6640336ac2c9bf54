//! Rows, and what is made of them.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;

fn object(text: &str) -> InputRow {
    InputRow { number: 7, line: 9, content: RowContent::Object(text.into()) }
}

fn record(columns: &[(&str, &str)]) -> (InputRow, Header) {
    let header: Vec<String> = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
    let fields = columns.iter().map(|(_, value)| (*value).into()).collect();
    (InputRow { number: 7, line: 9, content: RowContent::Fields(fields) }, Arc::from(header))
}

fn try_json(source: &str, row: &str) -> Result<String, RenderError> {
    let template = Template::compile(None, source).unwrap_or_else(|error| panic!("{source}: {error}"));
    template.render(&object(row), None).map(|prompt| prompt.user)
}

fn json(source: &str, row: &str) -> String {
    try_json(source, row).unwrap_or_else(|error| panic!("{source}: {error}"))
}

fn csv(source: &str, columns: &[(&str, &str)]) -> Result<String, RenderError> {
    let (row, header) = record(columns);
    Template::compile(None, source).unwrap().render(&row, Some(&header)).map(|prompt| prompt.user)
}

const ROW: &str = r#"{"s":"a \"b\"\n<é>{{ s }}","n":1.10,"big":9007199254740993,"huge":1e400,"minus":-0,
    "z":null,"t":true,"f":false,"o":{ "b" : 1.0, "a":[1, "x"] },"l":[3, "y", null, true],"e":"",
    "odd name":"odd","d":1,"d":"last","user":{"address":{"street":"Elm"}},"items":[{"n":2},{"n":10}]}"#;

/// Each way of writing a field must print it alike: without the engine, and with it.
#[test]
fn values_print_as_they_stand() {
    for (field, text) in [
        ("s", "a \"b\"\n<é>{{ s }}"),
        ("n", "1.10"),
        ("big", "9007199254740993"),
        ("huge", "1e400"),
        ("minus", "-0"),
        ("z", "null"),
        ("t", "true"),
        ("f", "false"),
        ("o", r#"{ "b" : 1.0, "a":[1, "x"] }"#),
        ("l", r#"[3, "y", null, true]"#),
        ("e", ""),
        ("row['odd name']", "odd"),
        ("d", "last"),
        ("row.d", "last"),
        ("user.address.street", "Elm"),
    ] {
        let source = format!("<{{{{ {field} }}}}>");
        assert_eq!(json(&source, ROW), format!("<{text}>"), "{field}");
        assert_eq!(
            json(&format!("{source}{{% set x = 1 %}}"), ROW),
            format!("<{text}>"),
            "{field}, by the engine"
        );
        assert_eq!(
            json(&format!("{{{{ '<' ~ {field} ~ '>' }}}}"), ROW),
            format!("<{text}>"),
            "{field}, joined"
        );
        assert_eq!(
            json(&format!("<{{{{ {field}|string }}}}>"), ROW),
            format!("<{text}>"),
            "{field}, as string"
        );
    }
    assert_eq!(json("{{ row }}", r#"{"a": 1.0}"#), r#"{"a": 1.0}"#);
}

#[test]
fn parts_and_loops() {
    for (source, text) in [
        ("{{ o.a[1] }}{{ l[-1] }}{{ l[0] }}{{ o['b'] }}", "xtrue31.0"),
        ("{% for x in l %}{{ x }},{% endfor %}", "3,y,null,true,"),
        ("{% for k in o %}{{ k }}={{ o[k] }};{% endfor %}", "b=1.0;a=[1, \"x\"];"),
        ("{% for k, v in o|items %}{{ k }}={{ v }};{% endfor %}", "b=1.0;a=[1, \"x\"];"),
        ("{% for i in items %}{{ loop.index }}:{{ i.n }} {% endfor %}", "1:2 2:10 "),
        ("{{ l|length }} {{ s|length }} {{ l|join('-') }}", "4 16 3-y-null-true"),
        (
            "{{ 'a' ~ (t if f) ~ (z if t) ~ (f or z) ~ (d == 'x') ~ (d is defined) ~ (not t) ~ (1 + 2) }}",
            "anullnullfalsetruefalse3",
        ),
        ("{{ l[:2] }} {{ [n, z, 'q\"'] }} {{ {'k': n} }}", r#"[3,"y"] [1.10,null,"q\""] {"k":1.10}"#),
        ("{{ items|map(attribute='n')|list }}", "[2,10]"),
        ("{{ items|map(attribute='n')|map('int')|sum }}", "12"),
        ("{{ items|sort(attribute='n', reverse=true)|first }}", r#"{"n":10}"#),
        ("{{ 'y' in l }} {{ 'b' in o }} {{ 'd' in row }}", "true true true"),
        (
            "{{ o|tojson }} {{ s|tojson }} {{ n|tojson }} {{ z|tojson }}",
            "{ \"b\" : 1.0, \"a\":[1, \"x\"] } \"a \\\"b\\\"\\n<é>{{ s }}\" 1.10 null",
        ),
        ("{{ o|tojson(indent=1) }}", "{\n \"b\": 1.0,\n \"a\": [\n  1,\n  \"x\"\n ]\n}"),
        ("{{ e|default('x') }}|{{ e|default('x', true) }}|{{ none_such|default('x') }}", "|x|x"),
        ("{{ user.none.street|default('-') }}{{ nobody.a.b|default('-') }}", "--"),
        ("{% if nobody.a.b is defined %}yes{% else %}no{% endif %}", "no"),
        (
            "{{ t|default('x') }} {{ n is number }} {{ n is integer }} {{ big is integer }} {{ s is string }} {{ z is none }}",
            "true true false true true true",
        ),
        ("{{ s|upper|length }} {{ n|replace('.', ',') }}", "16 1,10"),
        ("a\n", "a"),
    ] {
        assert_eq!(json(source, ROW), text, "{source}");
    }
}

#[test]
fn conditions() {
    for (source, text) in [
        ("{% if t %}1{% endif %}{% if f %}2{% endif %}{% if z %}3{% endif %}{% if n %}4{% endif %}", "14"),
        (
            "{% if minus %}1{% endif %}{% if e %}2{% endif %}{% if l %}3{% endif %}{% if not o %}4{% endif %}",
            "3",
        ),
        (
            "{{ d == 'last' }} {{ d != 'x' }} {{ t == true }} {{ z == none }} {{ d < 'm' }}",
            "true true true true true",
        ),
        (
            "{{ n|float > 1 }} {{ n|float + 1 }} {{ big|int + 1 }} {{ n|int }} {{ n|float == 1.1 }}",
            "true 2.1 9007199254740994 1 true",
        ),
        ("{{ d == 5 }} {{ z == 1 }} {{ t == 1 }}", "false false true"),
        ("{{ 'x' if d == 'last' else n > 1 }}", "x"),
        ("{{ d is eq('last') }} {{ n|int is gt 0 }} {{ n|int is odd }}", "true true true"),
        (
            "{{ l|length > 3 }} {% for x in l %}{% if loop.index == 1 %}{{ x }}{% endif %}{% endfor %}",
            "true 3",
        ),
    ] {
        assert_eq!(json(source, ROW), text, "{source}");
    }
}

#[test]
fn a_number_must_be_turned_into_one_before_it_is_used_as_one() {
    for source in [
        "{% if n > 5 %}{% endif %}",
        "{{ n == 1 }}",
        "{{ 1 < n }}",
        "{{ 0 < n < 5 }}",
        "{{ n == big }}",
        "{{ n in [1, 2] }}",
        "{{ 3 in l }}",
        "{{ n + 1 }}",
        "{{ n * 2 }}",
        "{{ -n }}",
        "{{ items[0].n >= 2 }}",
        "{% for i in items %}{% if i.n > 2 %}{% endif %}{% endfor %}",
        "{{ (n or big) > 1 }}",
        "{{ n|default(0) > 1 }}",
        "{{ l|first > 1 }}",
        "{{ n is gt 0 }}",
        "{{ n is odd }}",
        "{{ items|selectattr('n', 'gt', 3)|list }}",
        "{% set x = n %}{{ x > 1 }}",
        "{{ n|round }}",
        "{{ d > 5 }}",
        "{{ z < 5 }}",
    ] {
        let error = try_json(source, ROW).unwrap_err().to_string();
        assert!(error.contains("|int") || error.contains("map('int')"), "{source}: {error}");
    }
    let error =
        try_json("{% if user.age > 5 %}{% endif %}", r#"{"user":{"age":7}}"#).unwrap_err().to_string();
    assert!(error.contains("`user.age`") && error.contains("|float"), "{error}");
    let columns = [("price", "150"), ("name", "150 g")];
    for source in ["{{ price > 100 }}", "{{ price == 150 }}", "{{ price * 2 }}"] {
        assert!(csv(source, &columns).unwrap_err().to_string().contains("`price`"), "{source}");
    }
    assert_eq!(
        csv("{{ price|int > 100 }} {{ name == 150 }} {{ price == '150' }}", &columns).unwrap(),
        "true false true"
    );
}

#[test]
fn csv_records() {
    let columns = [("name", "Ann {{ x }}"), ("odd name", "a\n\"b\""), ("row", "r"), ("empty", "")];
    assert_eq!(
        csv("{{ name }}|{{ row['odd name'] }}|{{ row.row }}|{{ empty }}", &columns).unwrap(),
        "Ann {{ x }}|a\n\"b\"|r|"
    );
    assert_eq!(
        csv("{{ row }}{% if empty %}x{% endif %}", &columns).unwrap(),
        r#"{"name":"Ann {{ x }}","odd name":"a\n\"b\"","row":"r","empty":""}"#
    );
    assert_eq!(csv("{% for k in row %}{{ k }};{% endfor %}", &columns).unwrap(), "name;odd name;row;empty;");
    let error = csv("{{ name.first }}", &columns).unwrap_err();
    let path =
        |keys: &[&str]| FieldPath::of(keys.iter().map(|key| Step::Key((*key).to_owned())).collect()).unwrap();
    assert_eq!(
        error,
        RenderError::MissingField { field: path(&["name", "first"]), missing: path(&["name", "first"]) }
    );
}

#[test]
fn what_is_missing_is_named() {
    for (source, field, missing) in [
        ("{{ a }}{{ b }}", "b", "b"),
        ("{{ a }}{% if true %}{{ b }}{% endif %}", "b", "b"),
        ("{{ a.b.c }}", "a.b.c", "a.b"),
        ("{{ a.b.c|upper }}", "a.b.c", "a.b"),
        ("{% for x in b %}{% endfor %}", "b", "b"),
        ("{% if b %}{% endif %}", "b", "b"),
        ("{{ b == 'x' }}", "b", "b"),
        ("{{ b ~ 'x' }}", "b", "b"),
        ("{{ l[3] }}", "l[3]", "l[3]"),
        ("{{ row['b'] }}", "b", "b"),
        ("{{ b|tojson }}", "b", "b"),
        ("{{ 'x' in b }}", "b", "b"),
        ("{% if none_such is defined %}{{ none_such }}{% endif %}{{ b }}", "b", "b"),
    ] {
        match try_json(source, r#"{"a":{"x":1},"l":[1]}"#).unwrap_err() {
            RenderError::MissingField { field: have, missing: part } => {
                assert_eq!(
                    (have.to_string(), part.to_string()),
                    (field.to_owned(), missing.to_owned()),
                    "{source}"
                );
            }
            other => panic!("{source}: {other}"),
        }
    }
    let error = try_json("{{ a.b.c }}", r#"{"a":{}}"#).unwrap_err().to_string();
    assert_eq!(error, "the template needs the field `a.b.c`, which this row lacks: it has no `a.b`");
}

#[test]
fn rows_that_cannot_be_rendered() {
    for source in ["{{ a }}", "{{ a|upper }}", "{{ l[0]|upper }}"] {
        let error = try_json(source, r#"{"a":"x\ud83d","l":["x\ud83d"]}"#).unwrap_err().to_string();
        assert!(error.contains("surrogate"), "{source}: {error}");
    }
    assert_eq!(try_json("{{ a }}", r#"{"a":1,"b":"x\ud83d"}"#).unwrap(), "1");
    let bad = RowContent::Bad { raw: "x".into(), why: "too few fields".to_owned() };
    let bad = InputRow { number: 1, line: 2, content: bad };
    let template = Template::compile(None, "no fields").unwrap();
    assert_eq!(template.render(&bad, None).unwrap_err().to_string(), "too few fields");
    let endless = "{% for a in range(9999) %}{% for b in range(9999) %}{{ b }}{% endfor %}{% endfor %}";
    assert_eq!(try_json(endless, "{}"), Err(RenderError::TooMuchWork));
    let deep = format!(r#"{{"a":{}1{},"b":[[1]]}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(json("{{ a|length }}{{ a == b }}{{ a == a }}", &deep), "1falsetrue");
}

#[test]
fn both_prompts_are_rendered() {
    let template = Template::compile(Some("Be {{ tone }}."), "{{ text }}").unwrap();
    let prompt = template.render(&object(r#"{"tone":"kind","text":"Hi"}"#), None).unwrap();
    assert_eq!(prompt, Prompt { system: Some("Be kind.".into()), user: "Hi".into() });
    assert!(template.render(&object(r#"{"text":"Hi"}"#), None).unwrap_err().to_string().contains("`tone`"));
}

#[test]
fn large_fields_are_fine() {
    let large = "é\n".repeat(1_700_000);
    assert_eq!(csv("{{ a }}{% if a %}{% endif %}", &[("a", &large)]).unwrap().len(), large.len());
    let row = format!(r#"{{"a":{}}}"#, serde_json::Value::from(large.as_str()));
    assert_eq!(json("{{ a }}", &row), large);
    assert_eq!(json("{{ row }}{{ row }}", &row).len(), 2 * row.len());
}

proptest! {
    #[test]
    fn every_value_prints_alike_with_and_without_the_engine(text in ".*", number in any::<f64>(), other in ".*") {
        let row = serde_json::json!({"text": text, "number": number, "other": {"x": other}}).to_string();
        let source = "{{ text }}|{{ number }}|{{ other.x }}|{{ other }}";
        let (with, without) = (json(&format!("{source}{{% set x = 1 %}}"), &row), json(source, &row));
        prop_assert!(without.starts_with(&text));
        prop_assert_eq!(with, without);
    }

    #[test]
    fn no_template_panics(source in r"(\{\{|\}\}|\{%|%\}| if | for x in |endif|endfor|a|b\.c|row|\[|\]|\(|\)|'x'|1|>|==|\||int|default| is defined|~|\+|,| and | not | in ){0,20}") {
        if let Ok(template) = Template::compile(None, &source) {
            let _ = template.render(&object(ROW), None);
        }
    }
}
