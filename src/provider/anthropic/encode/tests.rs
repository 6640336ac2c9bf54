use super::*;
use crate::model::{Lesson, ProviderKind, Sampling};

fn call(model: &str) -> CallSettings {
    CallSettings {
        provider: ProviderKind::Anthropic,
        endpoint: "http://127.0.0.1:8000/v1/messages".to_owned(),
        own_host: false,
        model: model.to_owned(),
        max_output_tokens: 1024,
        structured: Structured::Auto,
        sampling: Sampling::default(),
        extra: Map::new(),
        cache: false,
        mock_seed: 0,
    }
}

fn prompt() -> Prompt {
    Prompt { system: Some("Be \"brief\".".to_owned()), user: "Is it spam?\n".to_owned() }
}

fn schema() -> Value {
    json!({ "type": "object", "properties": { "n": { "type": "integer", "minimum": 1 } }, "required": ["n"] })
}

fn steps(structured_steps: u8) -> Learned {
    Learned { structured_steps, ..Learned::default() }
}

fn body(call: &CallSettings, schema: Option<&Value>, learned: &Learned) -> Value {
    let request = AnthropicRequest::new(call, schema).unwrap();
    serde_json::from_slice(&request.encode(&prompt(), learned, None)).unwrap()
}

#[test]
fn free_text_is_a_plain_request() {
    let request = AnthropicRequest::new(&call("m"), None).unwrap();
    assert_eq!(
        String::from_utf8(request.encode(&prompt(), &steps(2), None)).unwrap(),
        r#"{"model":"m","max_tokens":1024,"system":"Be \"brief\".","messages":[{"role":"user","content":"Is it spam?\n"}]}"#
    );
    for system in [None, Some(" \n".to_owned())] {
        let bare = Prompt { system, user: "x".to_owned() };
        assert_eq!(
            String::from_utf8(request.encode(&bare, &steps(0), None)).unwrap(),
            r#"{"model":"m","max_tokens":1024,"messages":[{"role":"user","content":"x"}]}"#
        );
    }
}

#[test]
fn auto_goes_from_the_format_to_a_tool_to_the_prompt() {
    let format = body(&call("m"), Some(&schema()), &steps(0));
    assert_eq!(
        format["output_config"],
        json!({ "format": { "type": "json_schema", "schema": { "type": "object", "properties": {
            "n": { "type": "integer", "description": "{\"minimum\":1}" } },
            "required": ["n"], "additionalProperties": false } } })
    );
    assert!(format.get("tools").is_none() && format["system"] == "Be \"brief\".");

    let tool = body(&call("m"), Some(&schema()), &steps(1));
    assert!(tool.get("output_config").is_none());
    assert_eq!(
        tool["tools"],
        json!([{ "name": "answer", "description": "Takes the answer.", "input_schema": schema() }])
    );
    assert_eq!(
        tool["tool_choice"],
        json!({ "type": "tool", "name": "answer", "disable_parallel_tool_use": true })
    );

    let weak = body(&call("m"), Some(&schema()), &steps(2));
    assert!(weak.get("tools").is_none() && weak.get("output_config").is_none());
    assert!(weak["system"].as_str().unwrap().ends_with(&schema().to_string()));
}

#[test]
fn what_a_model_or_a_schema_rules_out_is_passed_over() {
    let next = |model: &str, schema: &Value, learned: &Learned| {
        let request = AnthropicRequest::new(&call(model), Some(schema)).unwrap();
        (request.form(learned), request.sent(learned).weaker)
    };
    let (format, tool, last) = (Structured::JsonSchema, Structured::Tool, Structured::Prompt);
    let step = |steps, refused, next| Some(Lesson::WeakerStructured { steps, refused, next });
    let taken = "claude-haiku-5-5";
    assert_eq!(next(taken, &schema(), &steps(0)), (Some(format), step(1, format, tool)));
    assert_eq!(next(taken, &schema(), &steps(1)), (Some(tool), step(2, tool, last)));
    assert_eq!(next("claude-opus-5-5", &schema(), &steps(0)), (Some(format), step(2, format, last)));
    let open = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    assert_eq!(next(taken, &open, &steps(0)), (Some(tool), step(2, tool, last)));
    assert_eq!(next("claude-opus-5-5", &open, &steps(0)), (Some(last), None));
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    assert_eq!(next(taken, &texts, &steps(0)), (Some(format), step(2, format, last)));
}

#[test]
fn a_chosen_form_is_kept() {
    let chosen = |model: &str, structured| CallSettings { structured, ..call(model) };
    let format = chosen("m", Structured::JsonSchema);
    assert_eq!(body(&format, Some(&schema()), &steps(2))["output_config"]["format"]["type"], "json_schema");
    for structured in [Structured::Prompt, Structured::JsonObject] {
        let asked = body(&chosen("m", structured), Some(&schema()), &steps(0));
        assert!(asked["system"].as_str().unwrap().contains("JSON Schema"));
    }
    let open = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    assert_eq!(body(&format, Some(&open), &steps(0))["output_config"]["format"]["schema"], open);
    let list = json!({ "type": "array", "items": { "type": "string" } });
    let error = AnthropicRequest::new(&chosen("m", Structured::Tool), Some(&list)).unwrap_err();
    assert_eq!(error, ProviderError::ToolNeedsObject);
}

#[test]
fn a_tool_that_cannot_be_forced_is_asked_for() {
    let tool = |model: &str| CallSettings { structured: Structured::Tool, ..call(model) };
    let forced = body(&tool("claude-haiku-5-5"), Some(&schema()), &steps(0));
    assert_eq!(forced["tool_choice"]["type"], "tool");
    assert_eq!(forced["system"], "Be \"brief\".");
    let dropped = Learned { dropped: vec!["tool_choice".to_owned()], ..Learned::default() };
    for (model, learned) in [("claude-haiku-5-5", dropped), ("claude-opus-5-5", steps(0))] {
        let asked = body(&tool(model), Some(&schema()), &learned);
        assert_eq!(asked["tool_choice"], json!({ "type": "auto", "disable_parallel_tool_use": true }));
        assert!(asked["system"].as_str().unwrap().ends_with("in no other way."));
        let request = AnthropicRequest::new(&tool(model), Some(&schema())).unwrap();
        assert!(!request.sent(&learned).tool_choice);
    }
    let request = AnthropicRequest::new(&tool("claude-haiku-5-5"), Some(&schema())).unwrap();
    assert!(request.sent(&steps(0)).tool_choice);
}

#[test]
fn parameters_are_sent_only_when_set_and_not_dropped() {
    let sampling = Sampling {
        temperature: serde_json::Number::from_f64(0.5),
        reasoning_effort: Some("low".to_owned()),
        ..Sampling::default()
    };
    let call = CallSettings { sampling, ..call("m") };
    let all = body(&call, Some(&schema()), &steps(0));
    assert_eq!((&all["temperature"], &all["output_config"]["effort"]), (&json!(0.5), &json!("low")));
    assert!(all.get("top_p").is_none() && all.get("reasoning_effort").is_none());
    assert_eq!(body(&call, None, &steps(0))["output_config"], json!({ "effort": "low" }));
    let dropped = ["temperature", "effort"].map(str::to_owned).to_vec();
    let dropped = Learned { dropped, ..Learned::default() };
    let left = body(&call, Some(&schema()), &dropped);
    assert!(left.get("temperature").is_none() && left["output_config"].get("effort").is_none());
    assert!(left["output_config"]["format"].is_object());
    let request = AnthropicRequest::new(&call, Some(&schema())).unwrap();
    assert_eq!(request.sent(&steps(0)).optional, ["temperature", "effort"]);
    assert!(request.sent(&dropped).optional.is_empty());
}

#[test]
fn extra_is_merged_last_and_into_the_configuration_of_the_output() {
    let extra = |value: Value| value.as_object().cloned().unwrap();
    let sampling = Sampling { reasoning_effort: Some("low".to_owned()), ..Sampling::default() };
    let mixed = extra(json!({ "model": "x", "max_tokens": 5, "service_tier": "auto",
        "output_config": { "effort": "high", "task_budget": 1 } }));
    let mixed = CallSettings { extra: mixed, sampling, ..call("m") };
    let request = AnthropicRequest::new(&mixed, None).unwrap();
    assert_eq!(
        String::from_utf8(request.encode(&prompt(), &steps(0), None)).unwrap(),
        r#"{"system":"Be \"brief\".","messages":[{"role":"user","content":"Is it spam?\n"}],"output_config":{"effort":"high","task_budget":1},"model":"x","max_tokens":5,"service_tier":"auto"}"#
    );
    assert!(request.sent(&steps(0)).optional.is_empty());
    let with_format = body(&mixed, Some(&schema()), &steps(0));
    assert_eq!(with_format["output_config"]["effort"], "high");
    assert_eq!(with_format["output_config"]["format"]["type"], "json_schema");
    for name in ["messages", "system"] {
        let call = CallSettings { extra: extra(json!({ name: [] })), ..call("m") };
        let error = AnthropicRequest::new(&call, None).unwrap_err();
        assert_eq!(error, ProviderError::ReservedExtra(name));
    }
}

#[test]
fn the_last_message_of_a_repair_is_the_users() {
    let request = AnthropicRequest::new(&call("m"), Some(&schema())).unwrap();
    let repair = Repair { answer: String::new(), errors: vec!["n: 0 is too small".to_owned()] };
    let body = request.encode(&prompt(), &steps(0), Some(&repair));
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["messages"][1], json!({ "role": "assistant", "content": "(no text)" }));
    assert_eq!(body["messages"][2]["role"], "user");
    let ask = body["messages"][2]["content"].as_str().unwrap();
    assert!(ask.contains("- n: 0 is too small\n") && ask.ends_with(&schema().to_string()), "{ask}");
    for weak in [1, 2].map(steps) {
        let body: Value = serde_json::from_slice(&request.encode(&prompt(), &weak, Some(&repair))).unwrap();
        assert!(body["messages"][2]["content"].as_str().unwrap().ends_with("and nothing else."));
    }
}

#[test]
fn the_key_has_a_header_of_its_own() {
    let named = headers(Some(&Secret::new("sk-ant-1".to_owned())));
    assert_eq!(named[1], ("anthropic-version", "2023-06-01".to_owned()));
    assert_eq!(named[2], ("x-api-key", "sk-ant-1".to_owned()));
    assert_eq!(headers(None).len(), 2);
}

proptest::proptest! {
    #[test]
    fn any_text_arrives_as_it_is(user in "(?s).{0,80}", system in "(?s).{0,80}", step in 0_u8..3) {
        let request = AnthropicRequest::new(&call("m"), Some(&schema())).unwrap();
        let prompt = Prompt { system: Some(system.clone()), user: user.clone() };
        let body: Value = serde_json::from_slice(&request.encode(&prompt, &steps(step), None)).unwrap();
        proptest::prop_assert_eq!(&body["messages"][0]["content"], &json!(user));
        if !system.trim().is_empty() {
            proptest::prop_assert!(body["system"].as_str().unwrap().starts_with(&system));
        }
    }
}

#[test]
fn the_system_prompt_is_marked_for_the_cache() {
    let mark = json!({ "type": "ephemeral" });
    let cached = |structured| CallSettings { cache: true, structured, ..call("m") };
    let plain = body(&cached(Structured::Auto), Some(&schema()), &steps(0));
    assert_eq!(plain["system"], json!([{ "type": "text", "text": "Be \"brief\".", "cache_control": mark }]));
    // What we add to the system prompt is the same for all rows too.
    let told = body(&cached(Structured::Prompt), Some(&schema()), &steps(0));
    assert!(told["system"][0]["text"].as_str().unwrap().ends_with(&schema().to_string()));
    assert_eq!(told["system"][0]["cache_control"], mark);
    assert_eq!(told["system"].as_array().unwrap().len(), 1);

    let request = AnthropicRequest::new(&cached(Structured::Auto), None).unwrap();
    let none = Prompt { system: None, ..prompt() };
    let bare: Value = serde_json::from_slice(&request.encode(&none, &steps(0), None)).unwrap();
    assert!(bare.get("system").is_none());

    let dropped = Learned { dropped: vec![CACHE.to_owned()], ..Learned::default() };
    assert_eq!(body(&cached(Structured::Auto), None, &dropped)["system"], "Be \"brief\".");
    assert_eq!(request.sent(&steps(0)).optional, [CACHE]);
    assert!(request.sent(&dropped).optional.is_empty());
}
