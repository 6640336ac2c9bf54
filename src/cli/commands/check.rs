//! Everything that must be known to be good before a run begins.

use crate::answer::{Reader, Schema};
use crate::cli::failure::Failure;
use crate::dataset::{Checked, Source};
use crate::model::{Header, InputFormat, InputRow, OutputFormat, Ragged, RowContent, Settings};
use crate::output::{ColumnCollector, check_names, has_member};
use crate::prompt::{FieldCheck, PartialField, Template, TokenCounter};
use crate::provider::Codec;
use crate::run::chain;

/// What the check has made and found.
pub(super) struct Good {
    pub(super) source: Source,
    pub(super) checked: Checked,
    pub(super) template: Template,
    pub(super) answers: Reader,
    pub(super) codec: Codec,
    /// Columns of a CSV input, or of a JSONL input that becomes a CSV.
    pub(super) columns: Option<Header>,
    pub(super) warnings: Vec<String>,
    /// Tokens of a prompt by their characters, the mean over a part of the rows.
    pub(super) prompt_tokens: u64,
}

/// Checks template, schema, provider settings and every row, offline, and lists all problems together.
pub(super) fn check(settings: &Settings) -> Result<Good, Failure> {
    let mut problems = Vec::new();
    let mut note = |problem: String| problems.push(problem);
    let template = Template::compile(settings.prompt.system.as_deref(), &settings.prompt.user)
        .map_err(|error| note(chain(&error)))
        .ok();
    let schema = match &settings.answer.schema {
        Some(schema) => Schema::compile(schema),
        None => Ok(Schema::free_text()),
    };
    let answers = schema
        .and_then(|schema| Reader::new(schema, &settings.answer))
        .map_err(|error| note(chain(&error)))
        .ok();
    let codec =
        Codec::new(&settings.call, settings.answer.schema.as_ref()).map_err(|error| note(chain(&error))).ok();

    let source = Source::new(settings.input.clone());
    let mut fields = template.as_ref().map(FieldCheck::new);
    let to_csv = matches!(settings.output.format, OutputFormat::Csv { .. });
    let mut collector = ColumnCollector::new();
    let mut taken = None;
    let mut sizes = Sizes::new(&settings.call.model);
    let checked = source.check(&mut |row, header| {
        if let Some(fields) = &mut fields {
            fields.see(row, header);
        }
        if let Some(template) = &template {
            sizes.see(template, row, header);
        }
        if to_csv {
            collector.add(row);
        } else if let RowContent::Object(line) = &row.content
            && taken.is_none()
            && has_member(line, &settings.output.result_field)
        {
            taken = Some(row.number);
        }
    });
    let checked = match checked {
        Ok(checked) => checked,
        Err(error) if problems.is_empty() => return Err(error.into()),
        Err(error) => {
            problems.push(chain(&error));
            return Err(Failure::problems(problems));
        }
    };
    let mut warnings = checked.warnings.clone();
    for problem in &checked.problems.first {
        problems.push(format!("{}, {problem}", source.shown_as()));
    }
    let more = checked.problems.count.saturating_sub(checked.problems.first.len() as u64);
    if let Some(fields) = fields {
        match fields.verdict() {
            Ok(report) => warnings.extend(report.partial.iter().map(lacking)),
            Err(error) => problems.push(format!("{}: {}", source.shown_as(), chain(&error))),
        }
    }
    if let Some(row) = taken {
        problems.push(format!(
            "{}, row {row}: the input already has `{}`: choose another name with --result-field",
            source.shown_as(),
            settings.output.result_field
        ));
    }
    let columns = match (&checked.header, to_csv) {
        (Some(header), _) => Some(header.clone()),
        (None, true) => match collector.finish() {
            Ok(header) => Some(header),
            Err(error) => {
                problems.push(format!("{}: {}", source.shown_as(), chain(&error)));
                None
            }
        },
        (None, false) => None,
    };
    if let Some(answers) = &answers {
        let names = check_names(&settings.output, columns.as_ref(), answers.schema().properties());
        if let Err(error) = names {
            problems.push(format!("{}: {}", source.shown_as(), chain(&error)));
        }
    }
    let limit = settings.limits.max_rows;
    if limit > 0 && checked.selected > limit {
        problems.push(format!("{} rows are selected, and limits.max_rows allows {limit}", checked.selected));
    }
    match (template, answers, codec) {
        (Some(template), Some(answers), Some(codec)) if problems.is_empty() => {
            warnings.extend(cache_warning(settings, &sizes));
            let prompt_tokens = sizes.mean();
            Ok(Good { source, checked, template, answers, codec, columns, warnings, prompt_tokens })
        }
        _ => Err(listed(problems, more, way_out(settings, checked.problems.count))),
    }
}

/// The size of prompts, from so few rows that it costs nearly nothing.
struct Sizes {
    counter: TokenCounter,
    rows: u64,
    rendered: u64,
    tokens: u64,
    /// The first system prompt, and whether another row has another one.
    system: Option<String>,
    systems_differ: bool,
}

impl Sizes {
    /// The first rows are all rendered, and after that one of so many.
    const STEP: u64 = 64;

    fn new(model: &str) -> Self {
        let counter = TokenCounter::by_ratio(model);
        Self { counter, rows: 0, rendered: 0, tokens: 0, system: None, systems_differ: false }
    }

    fn see(&mut self, template: &Template, row: &InputRow, header: Option<&Header>) {
        self.rows += 1;
        if self.rows > Self::STEP && !self.rows.is_multiple_of(Self::STEP) {
            return;
        }
        if let Ok(prompt) = template.render(row, header) {
            let system = prompt.system.as_deref().map_or(0, |text| self.counter.count(text));
            self.rendered += 1;
            self.tokens = self.tokens.saturating_add(system + self.counter.count(&prompt.user));
            if self.rendered == 1 {
                self.system = prompt.system;
            } else {
                self.systems_differ |= self.system != prompt.system;
            }
        }
    }

    fn mean(&self) -> u64 {
        self.tokens / self.rendered.max(1)
    }
}

/// Why a cache that was asked for will not help.
fn cache_warning(settings: &Settings, sizes: &Sizes) -> Option<String> {
    if !settings.call.marks_cache() {
        return None;
    }
    let why = match &sizes.system {
        _ if sizes.systems_differ => {
            "the system prompt differs from row to row: each row would pay for writing it, and none would read it; \
             move what differs to the end of prompt.user"
        }
        Some(system) if !system.trim().is_empty() => return None,
        _ => "it marks the system prompt, and there is none: nothing is cached",
    };
    Some(format!("prompt.cache: {why}"))
}

/// What can be done about malformed rows without mending them.
fn way_out(settings: &Settings, malformed: u64) -> Option<String> {
    let ragged = match settings.input.format {
        InputFormat::Csv { .. } if settings.input.ragged == Ragged::Error => {
            "; --ragged pad fills rows that are too short"
        }
        _ => "",
    };
    let keep = "mend the input, or let --bad-rows keep make such rows error/bad_input";
    (malformed > 0).then(|| format!("{keep}{ragged}"))
}

/// The first problems, and how many are not listed.
fn listed(mut problems: Vec<String>, mut more: u64, way_out: Option<String>) -> Failure {
    if problems.len() > Failure::LISTED {
        more += (problems.len() - Failure::LISTED) as u64;
        problems.truncate(Failure::LISTED);
    }
    if more > 0 {
        problems.push(format!("{more} more problems are not listed"));
    }
    problems.extend(way_out);
    Failure::problems(problems)
}

/// A field that some rows lack, for a warning.
fn lacking(partial: &PartialField) -> String {
    let rows: Vec<String> = partial.first_rows.iter().map(u64::to_string).collect();
    let more = if partial.missing > rows.len() as u64 { ", …" } else { "" };
    let (count, field) = (partial.missing, &partial.field);
    format!("{count} rows lack the field `{field}` and become error/bad_input: {}{more}", rows.join(", "))
}
