//! Inputs that have what a template needs, and inputs that do not.

use super::*;

fn check_json(source: &str, rows: &[&str]) -> Result<FieldReport, PromptError> {
    let mut check = FieldCheck::new(&Template::compile(None, source).unwrap());
    for (at, text) in rows.iter().enumerate() {
        let number = u64::try_from(at + 1).unwrap();
        check.see(&InputRow { number, line: number, content: RowContent::Object((*text).into()) }, None);
    }
    check.verdict()
}

fn check_csv(source: &str, header: &[&str], rows: &[&[&str]]) -> Result<FieldReport, PromptError> {
    let header: Header = header.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>().into();
    let mut check = FieldCheck::new(&Template::compile(None, source).unwrap());
    for (at, fields) in rows.iter().enumerate() {
        let number = u64::try_from(at + 1).unwrap();
        let content = RowContent::Fields(fields.iter().map(|field| (*field).into()).collect());
        check.see(&InputRow { number, line: number + 1, content }, Some(&header));
    }
    check.verdict()
}

fn partial(report: &FieldReport) -> Vec<(String, u64, Vec<u64>)> {
    report
        .partial
        .iter()
        .map(|field| (field.field.to_string(), field.missing, field.first_rows.clone()))
        .collect()
}

#[test]
fn a_field_that_no_row_has_is_an_error_with_a_suggestion() {
    let error =
        check_csv("Classify {{ revieww }}", &["id", "review"], &[&["1", "x"]]).unwrap_err().to_string();
    assert!(error.contains("`revieww`") && error.contains("did you mean `review`?"), "{error}");
    assert!(error.contains("columns `id`, `review`"), "{error}");
    let error = check_json("{{ Text }}", &[r#"{"text":"a"}"#]).unwrap_err().to_string();
    assert!(error.contains("did you mean `text`?"), "{error}");
    let error = check_json("{{ user.name }}", &[r#"{"user":{"nam":1}}"#]).unwrap_err().to_string();
    assert!(error.contains("`user.name`"), "{error}");
    let error = check_csv("{{ user.name }}", &["user", "x"], &[&["a", "b"]]).unwrap_err().to_string();
    assert!(error.contains("holds texts"), "{error}");
    assert!(check_json("{{ x }}", &["{}"]).unwrap_err().to_string().contains("none at all"));
}

#[test]
fn one_column_hints_at_the_delimiter() {
    let error = check_csv("{{ b }}", &["a;b"], &[&["1;2"]]).unwrap_err().to_string();
    assert!(error.contains("`a;b`") && error.contains("--delimiter"), "{error}");
}

#[test]
fn rows_that_lack_a_field_are_counted() {
    let rows: Vec<String> = (1..=50)
        .map(|row| {
            if row % 2 == 0 { r#"{"a":1,"b":{"c":null}}"#.to_owned() } else { r#"{"a":1,"b":{}}"#.to_owned() }
        })
        .collect();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let report = check_json("{{ a }}{{ b.c }}{% if a %}{{ b.x|default('-') }}{% endif %}", &rows).unwrap();
    let first: Vec<u64> = (0..20).map(|at| 2 * at + 1).collect();
    assert_eq!(partial(&report), [("b.c".to_owned(), 25, first)]);
    assert_eq!(report.rows, 50);
}

#[test]
fn a_branch_may_do_without() {
    let rows = [r#"{"kind":"a","a":"x"}"#, r#"{"kind":"b","b":"x"}"#];
    let source = "{% if kind == 'a' %}{{ a }}{% else %}{{ b }}{% endif %}";
    assert_eq!(partial(&check_json(source, &rows).unwrap()), []);
    assert!(check_json("{% if kind == 'a' %}{{ c }}{% endif %}", &rows).is_err());
}

#[test]
fn a_number_that_is_compared_counts_as_undefined() {
    let source = "{% if score > 5 %}x{% endif %}";
    let error = check_json(source, &[r#"{"score":7}"#, r#"{"score":3}"#]).unwrap_err().to_string();
    assert!(error.contains("`score`") && error.contains("|int"), "{error}");
    let error = check_csv(source, &["score"], &[&["7"]]).unwrap_err().to_string();
    assert!(error.contains("|int") && !error.contains("delimiter"), "{error}");
    assert!(
        check_json("{% if score is defined and score > 5 %}x{% endif %}", &["{}", r#"{"score":7}"#]).is_err()
    );
    assert!(check_json("{% if score is defined and score > 5 %}x{% endif %}", &["{}"]).is_ok());
    assert!(check_json("{% if score|int > 5 %}x{% endif %}", &[r#"{"score":7}"#]).is_ok());
    let mixed =
        check_json("{% if kind == 'a' %}x{% endif %}", &[r#"{"kind":"a"}"#, r#"{"kind":2}"#]).unwrap();
    assert_eq!(partial(&mixed), [("kind".to_owned(), 1, vec![2])]);
}

#[test]
fn names_are_found_by_their_meaning() {
    assert!(check_json("{{ row['é'] }}", &[r#"{"\u00e9":1}"#]).is_ok_and(|report| report.partial.is_empty()));
    assert!(check_json("{{ a[0].b }} {{ t[0] }}", &[r#"{"a":[{"b":1}],"t":"x"}"#]).is_ok());
    assert_eq!(check_json("{{ a }}", &[]).unwrap(), FieldReport::default());
}
