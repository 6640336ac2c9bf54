use serde_json::json;

use super::*;
use crate::model::{Lesson, ProviderKind, Sampling};

fn call() -> CallSettings {
    CallSettings {
        provider: ProviderKind::Openai,
        endpoint: "http://127.0.0.1:8000/v1/chat/completions".to_owned(),
        own_host: false,
        model: "m".to_owned(),
        max_output_tokens: 1024,
        structured: Structured::Auto,
        sampling: Sampling::default(),
        extra: serde_json::Map::new(),
        cache: false,
        mock_seed: 0,
    }
}

fn prompt() -> Prompt {
    Prompt { system: Some("Be \"brief\".".to_owned()), user: "Is it spam?\n".to_owned() }
}

fn schema() -> Value {
    serde_json::from_str(
        r#"{"type":"object","properties":{"z":{"type":"boolean"},"a":{"type":"string"}},
            "required":["z","a"],"additionalProperties":false}"#,
    )
    .unwrap()
}

fn text(call: &CallSettings, schema: Option<&Value>, learned: &Learned) -> String {
    let body = OpenaiRequest::new(call, schema).unwrap().encode(&prompt(), learned, None);
    String::from_utf8(body).unwrap()
}

fn body(call: &CallSettings, schema: Option<&Value>, learned: &Learned) -> Value {
    serde_json::from_str(&text(call, schema, learned)).unwrap()
}

fn steps(structured_steps: u8) -> Learned {
    Learned { structured_steps, ..Learned::default() }
}

#[test]
fn free_text_is_a_plain_request() {
    assert_eq!(
        text(&call(), None, &steps(2)),
        r#"{"model":"m","messages":[{"role":"system","content":"Be \"brief\"."},{"role":"user","content":"Is it spam?\n"}],"max_tokens":1024}"#
    );
    let request = OpenaiRequest::new(&CallSettings { model: String::new(), ..call() }, None).unwrap();
    let bare = Prompt { system: None, user: "x".to_owned() };
    assert_eq!(
        String::from_utf8(request.encode(&bare, &Learned::default(), None)).unwrap(),
        r#"{"messages":[{"role":"user","content":"x"}],"max_tokens":1024}"#
    );
}

#[test]
fn the_length_limit_is_named_by_host_and_swapped() {
    let swapped = Learned { swap_length_parameter: true, ..Learned::default() };
    for (own_host, learned, name) in [
        (false, Learned::default(), "max_tokens"),
        (false, swapped.clone(), "max_completion_tokens"),
        (true, Learned::default(), "max_completion_tokens"),
        (true, swapped, "max_tokens"),
    ] {
        let call = CallSettings { own_host, ..call() };
        let body = body(&call, None, &learned);
        let names: Vec<_> = LENGTH.iter().filter(|name| body.get(**name) == Some(&json!(1024))).collect();
        assert_eq!(names, [&name], "{body}");
        let sent = OpenaiRequest::new(&call, None).unwrap().sent(&learned);
        assert_eq!(sent.length_name, (!learned.swap_length_parameter).then_some(name));
    }
}

#[test]
fn sampling_is_sent_only_when_set_and_not_dropped() {
    let sampling = Sampling {
        temperature: serde_json::Number::from_f64(0.7),
        seed: Some(7),
        reasoning_effort: Some("low".to_owned()),
        ..Sampling::default()
    };
    let call = CallSettings { sampling, ..call() };
    let dropped = Learned { dropped: vec!["seed".to_owned()], ..Learned::default() };
    let body = body(&call, None, &dropped);
    assert_eq!(body["temperature"], json!(0.7));
    assert_eq!(body["reasoning_effort"], json!("low"));
    assert!(body.get("seed").is_none() && body.get("top_p").is_none());
    let sent = OpenaiRequest::new(&call, None).unwrap().sent(&dropped);
    assert_eq!(sent.optional, ["temperature", "reasoning_effort"]);
}

#[test]
fn the_schema_goes_down_step_by_step() {
    let strong = text(&call(), Some(&schema()), &steps(0));
    assert!(strong.contains(&format!(
        r#""response_format":{{"type":"json_schema","json_schema":{{"name":"answer","strict":true,"schema":{}}}}}"#,
        schema()
    )));
    assert!(!strong.contains("JSON Schema"));

    let middle = body(&call(), Some(&schema()), &steps(1));
    assert_eq!(middle["response_format"], json!({ "type": "json_object" }));
    let system = middle["messages"][0]["content"].as_str().unwrap();
    assert!(
        system.starts_with("Be \"brief\".\n\nAnswer with JSON") && system.ends_with(&schema().to_string())
    );

    for weak in [2, 3, 255] {
        let weak = body(&call(), Some(&schema()), &steps(weak));
        assert!(weak.get("response_format").is_none());
        assert_eq!(weak["messages"][0]["content"], json!(system));
    }
    let request = OpenaiRequest::new(&call(), Some(&schema())).unwrap();
    let (refused, next) = (Structured::JsonObject, Structured::Prompt);
    assert_eq!(request.sent(&steps(1)).weaker, Some(Lesson::WeakerStructured { steps: 2, refused, next }));
    assert_eq!(request.sent(&steps(2)).weaker, None);
}

#[test]
fn a_chosen_form_is_kept() {
    for (structured, format) in [
        (Structured::JsonSchema, json!("json_schema")),
        (Structured::JsonObject, json!("json_object")),
        (Structured::Prompt, Value::Null),
    ] {
        let call = CallSettings { structured, ..call() };
        let body = body(&call, Some(&schema()), &steps(2));
        assert_eq!(body["response_format"]["type"], format);
        assert!(OpenaiRequest::new(&call, Some(&schema())).unwrap().sent(&steps(0)).weaker.is_none());
    }
}

#[test]
fn a_tool_is_forced() {
    let tool = CallSettings { structured: Structured::Tool, ..call() };
    let forced = body(&tool, Some(&schema()), &steps(2));
    assert_eq!(
        forced["tools"],
        json!([{ "type": "function", "function": { "name": "answer", "description": "Takes the answer.",
            "strict": true, "parameters": schema() } }])
    );
    assert_eq!(forced["tool_choice"], json!({ "type": "function", "function": { "name": "answer" } }));
    assert_eq!(forced["parallel_tool_calls"], json!(false));
    assert!(forced.get("response_format").is_none());
    assert_eq!(forced["messages"][0]["content"], json!("Be \"brief\"."));

    let dropped = ["tool_choice", "parallel_tool_calls"].map(str::to_owned).to_vec();
    let dropped = Learned { dropped, ..Learned::default() };
    let words = body(&tool, Some(&schema()), &dropped);
    assert_eq!(words["tool_choice"], json!("required"));
    assert!(words.get("parallel_tool_calls").is_none());
    let sent = |learned: &Learned| OpenaiRequest::new(&tool, Some(&schema())).unwrap().sent(learned);
    assert!(sent(&steps(0)).tool_choice && !sent(&dropped).tool_choice);
    assert_eq!((sent(&steps(0)).optional, sent(&dropped).optional.len()), (vec!["parallel_tool_calls"], 0));

    let unstrict = Learned { dropped: vec!["strict".to_owned()], ..Learned::default() };
    assert!(sent(&steps(0)).strict && !sent(&unstrict).strict);
    assert!(body(&tool, Some(&schema()), &unstrict)["tools"][0]["function"].get("strict").is_none());
    let format = body(&call(), Some(&schema()), &unstrict)["response_format"].clone();
    assert_eq!(format["json_schema"], json!({ "name": "answer", "schema": schema() }));

    let open = json!({ "properties": { "a": { "type": "string", "minLength": 1 } } });
    let loose = body(&tool, Some(&open), &steps(0));
    let function = &loose["tools"][0]["function"];
    assert_eq!(function["parameters"]["type"], "object");
    assert!(function.get("strict").is_none());
    for schema in
        [json!({ "type": "array", "items": { "type": "string" } }), json!({ "type": "object", "anyOf": [] })]
    {
        assert_eq!(OpenaiRequest::new(&tool, Some(&schema)).unwrap_err(), ProviderError::ToolNeedsObject);
    }
    assert!(OpenaiRequest::new(&tool, None).is_ok(), "free text needs no tool");
}

#[test]
fn auto_sends_a_schema_that_the_strict_form_takes() {
    let open = json!({ "type": "object", "properties": { "a": { "type": "string", "minLength": 1 } },
        "required": ["a"] });
    let format = |own_host, structured| {
        let call = CallSettings { own_host, structured, ..call() };
        body(&call, Some(&open), &steps(0))["response_format"]["json_schema"].clone()
    };
    let derived = format(true, Structured::Auto);
    assert_eq!(
        (&derived["strict"], &derived["schema"]["additionalProperties"]),
        (&json!(true), &json!(false))
    );
    for (own_host, structured) in [(false, Structured::Auto), (true, Structured::JsonSchema)] {
        let given = format(own_host, structured);
        assert_eq!((&given["strict"], &given["schema"]), (&json!(false), &open));
    }
}

#[test]
fn other_roots_are_never_asked_for_as_an_object() {
    let list = json!({ "type": "array", "items": { "type": "string" } });
    let body = body(&call(), Some(&list), &steps(1));
    assert!(body.get("response_format").is_none());
    assert!(body["messages"][0]["content"].as_str().unwrap().contains("JSON"));
}

#[test]
fn extra_is_merged_last() {
    let extra = json!({ "model": "x", "temperature": 1, "max_tokens": 5, "response_format": { "type": "text" },
        "service_tier": "flex" });
    let Value::Object(extra) = extra else { unreachable!() };
    let sampling = Sampling { temperature: serde_json::Number::from_f64(0.5), ..Sampling::default() };
    let call = CallSettings { extra, sampling, own_host: true, ..call() };
    let text = text(&call, Some(&schema()), &Learned::default());
    let end = r#"],"model":"x","temperature":1,"max_tokens":5,"response_format":{"type":"text"},"service_tier":"flex"}"#;
    assert!(text.starts_with("{\"messages\":[") && text.ends_with(end), "{text}");
    let sent = OpenaiRequest::new(&call, Some(&schema())).unwrap().sent(&Learned::default());
    assert!(sent.length_name.is_none() && sent.weaker.is_none() && sent.optional.is_empty());

    let Value::Object(extra) = json!({ "messages": [] }) else { unreachable!() };
    let call = CallSettings { extra, ..call };
    assert_eq!(OpenaiRequest::new(&call, None).unwrap_err(), ProviderError::ReservedExtra("messages"));
}

#[test]
fn a_repair_carries_the_answer_and_its_errors() {
    let request = OpenaiRequest::new(&call(), Some(&schema())).unwrap();
    let repair = Repair { answer: "{\"z\":1}".to_owned(), errors: vec!["z: 1 is no boolean".to_owned()] };
    let body = request.encode(&prompt(), &Learned::default(), Some(&repair));
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["messages"][2], json!({ "role": "assistant", "content": "{\"z\":1}" }));
    assert_eq!(body["messages"][3]["role"], "user");
    let ask = body["messages"][3]["content"].as_str().unwrap();
    assert!(ask.contains("- z: 1 is no boolean\n") && ask.ends_with(&schema().to_string()), "{ask}");
    let repair = Repair { answer: " ".to_owned(), errors: Vec::new() };
    let body = request.encode(&prompt(), &Learned::default(), Some(&repair));
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["messages"][2]["content"], "(no text)");
}

#[test]
fn the_key_is_a_bearer() {
    let named = headers(Some(&Secret::new("sk-1".to_owned())));
    assert_eq!(named[1], ("authorization", "Bearer sk-1".to_owned()));
    assert_eq!(headers(None).len(), 1);
}

proptest::proptest! {
    #[test]
    fn any_text_arrives_as_it_is(user in "(?s).{0,80}", system in "(?s).{0,80}", step in 0_u8..3) {
        let request = OpenaiRequest::new(&call(), Some(&schema())).unwrap();
        let prompt = Prompt { system: Some(system.clone()), user: user.clone() };
        let body = request.encode(&prompt, &steps(step), None);
        let body: Value = serde_json::from_slice(&body).unwrap();
        let messages = body["messages"].as_array().unwrap();
        proptest::prop_assert_eq!(&messages[messages.len() - 1]["content"], &json!(user));
        if messages.len() == 2 {
            proptest::prop_assert!(messages[0]["content"].as_str().unwrap().starts_with(&system));
        }
    }
}
