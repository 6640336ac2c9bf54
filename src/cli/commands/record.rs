//! What the store keeps of a run's settings, so that `show` can find and render a row later.

use serde::{Deserialize, Serialize};

use crate::answer::{Reader, Schema};
use crate::cli::commands::stored_path;
use crate::dataset::Source;
use crate::model::{
    AnswerSettings, BadRows, Encoding, Ensemble, InputFormat, InputPath, InputSettings, OutputFormat,
    OutputOrder, OutputSettings, PromptSettings, Ragged, Rule, Selection, Settings,
};
use crate::prompt::Template;
use crate::run::{PastPlan, RowJudge};

/// The record, as JSON in the store. Members are only ever added.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) input: InputRecord,
    pub(super) model: String,
    pub(super) system: Option<String>,
    pub(super) user: String,
    pub(super) max_output_tokens: u64,
    /// The command that continues the run.
    pub(super) command: String,
    pub(super) answer: AnswerRecord,
    pub(super) ensemble: EnsembleRecord,
    #[serde(default)]
    pub(super) output: OutputRecord,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct InputRecord {
    #[serde(with = "stored_path")]
    file: std::path::PathBuf,
    shown_as: String,
    /// `jsonl`, or the delimiter of a CSV.
    delimiter: Option<u8>,
    encoding: Option<String>,
    keep_bad: bool,
    pad: bool,
    id: Option<String>,
    max_record: usize,
    #[serde(default)]
    selection: SelectionRecord,
}

/// Which rows the run has taken.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
enum SelectionRecord {
    #[default]
    All,
    First(u64),
    Ranges(Vec<(u64, u64)>),
    Pick {
        count: u64,
        seed: u64,
    },
}

/// How the run writes its output, but for the place.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OutputRecord {
    prefix: String,
    result_field: String,
    csv_safe: bool,
    accounting: bool,
}

impl Default for OutputRecord {
    fn default() -> Self {
        let (prefix, result_field) = (String::new(), "verify".to_owned());
        Self { prefix, result_field, csv_safe: false, accounting: true }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct AnswerRecord {
    pub(super) schema: Option<serde_json::Value>,
    pub(super) verdict: Option<String>,
    pub(super) pass: Vec<serde_json::Value>,
    pub(super) confidence: Option<String>,
    pub(super) agree_on: Option<Vec<String>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct EnsembleRecord {
    pub(super) samples: u16,
    pub(super) majority: bool,
    pub(super) auto_pass: String,
    pub(super) auto_fail: String,
    pub(super) early_stop: bool,
}

impl Record {
    pub(super) fn new(settings: &Settings, command: String) -> Self {
        let input = &settings.input;
        let file = input.path.file();
        Self {
            input: InputRecord {
                file: std::path::absolute(file).unwrap_or_else(|_| file.to_owned()),
                shown_as: input.path.display(),
                delimiter: match input.format {
                    InputFormat::Csv { delimiter } => Some(delimiter),
                    InputFormat::Jsonl => None,
                },
                encoding: match input.encoding {
                    Encoding::Unicode => None,
                    Encoding::Named(encoding) => Some(encoding.name().to_owned()),
                },
                keep_bad: input.bad_rows == BadRows::Keep,
                pad: input.ragged == Ragged::Pad,
                id: input.id_column.clone(),
                max_record: input.max_record,
                selection: match &input.selection {
                    Selection::All => SelectionRecord::All,
                    Selection::First(count) => SelectionRecord::First(*count),
                    Selection::Ranges(ranges) => SelectionRecord::Ranges(ranges.clone()),
                    Selection::Pick { count, seed } => SelectionRecord::Pick { count: *count, seed: *seed },
                },
            },
            model: settings.call.model.clone(),
            system: settings.prompt.system.clone(),
            user: settings.prompt.user.clone(),
            max_output_tokens: settings.call.max_output_tokens,
            command,
            answer: AnswerRecord {
                schema: settings.answer.schema.clone(),
                verdict: settings.answer.verdict.clone(),
                pass: settings.answer.pass.clone(),
                confidence: settings.answer.confidence.clone(),
                agree_on: settings.answer.agree_on.clone(),
            },
            ensemble: EnsembleRecord {
                samples: settings.ensemble.samples,
                majority: settings.ensemble.rule == Rule::Majority,
                auto_pass: settings.ensemble.auto_pass.to_string(),
                auto_fail: settings.ensemble.auto_fail.to_string(),
                early_stop: settings.ensemble.early_stop,
            },
            output: OutputRecord {
                prefix: settings.output.prefix.clone(),
                result_field: settings.output.result_field.clone(),
                csv_safe: settings.output.csv_safe,
                accounting: settings.output.accounting,
            },
        }
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(super) fn from_json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// What reads the run's rows out of the store.
    pub(super) fn judge(&self) -> Option<RowJudge> {
        let schema = match &self.answer.schema {
            Some(schema) => Schema::compile(schema).ok()?,
            None => Schema::free_text(),
        };
        let answer = AnswerSettings {
            schema: self.answer.schema.clone(),
            verdict: self.answer.verdict.clone(),
            pass: self.answer.pass.clone(),
            confidence: self.answer.confidence.clone(),
            agree_on: self.answer.agree_on.clone(),
            repair: 0,
        };
        let reader = Reader::new(schema, &answer).ok()?;
        Some(RowJudge::new(reader, &answer, &self.rules()?))
    }

    /// How samples decide.
    pub(super) fn rules(&self) -> Option<Ensemble> {
        Some(Ensemble {
            samples: self.ensemble.samples,
            rule: if self.ensemble.majority { Rule::Majority } else { Rule::Unanimous },
            auto_pass: self.ensemble.auto_pass.parse().ok()?,
            auto_fail: self.ensemble.auto_fail.parse().ok()?,
            early_stop: self.ensemble.early_stop,
            concurrent_samples: false,
        })
    }

    /// What the run is read again with; `None` where a part of it cannot be understood any more.
    pub(super) fn past(&self) -> Option<PastPlan> {
        Some(PastPlan {
            source: Source::new(self.input.whole()),
            judge: self.judge()?,
            template: Template::compile(self.system.as_deref(), &self.user).ok()?,
            schema: self.answer.schema.clone(),
            model: Some(self.model.clone()).filter(|model| !model.is_empty()),
        })
    }

    pub(super) fn prompt(&self) -> PromptSettings {
        PromptSettings { system: self.system.clone(), user: self.user.clone(), version: String::new() }
    }
}

impl OutputRecord {
    /// The output in another place.
    pub(super) fn settings(&self, path: Option<std::path::PathBuf>, format: OutputFormat) -> OutputSettings {
        OutputSettings {
            path,
            format,
            prefix: self.prefix.clone(),
            result_field: self.result_field.clone(),
            csv_safe: self.csv_safe,
            accounting: self.accounting,
            order: OutputOrder::Input,
        }
    }
}

impl InputRecord {
    /// The name of the copy of standard input in the state folder, if the run has read that.
    pub(super) fn spool(&self) -> Option<std::ffi::OsString> {
        let name = self.file.file_name().filter(|_| self.shown_as == "-")?;
        name.to_str().is_some_and(|name| name.starts_with("spool-")).then(|| name.to_owned())
    }

    /// The input as the run has read it.
    pub(super) fn whole(&self) -> InputSettings {
        let selection = match &self.selection {
            SelectionRecord::All => Selection::All,
            SelectionRecord::First(count) => Selection::First(*count),
            SelectionRecord::Ranges(ranges) => Selection::Ranges(ranges.clone()),
            SelectionRecord::Pick { count, seed } => Selection::Pick { count: *count, seed: *seed },
        };
        let bad_rows = if self.keep_bad { BadRows::Keep } else { BadRows::Stop };
        InputSettings { selection, bad_rows, id_column: self.id.clone(), ..self.settings(0) }
    }

    /// The format of the input.
    pub(super) fn format(&self) -> InputFormat {
        self.delimiter.map_or(InputFormat::Jsonl, |delimiter| InputFormat::Csv { delimiter })
    }

    /// The input with one row selected.
    pub(super) fn settings(&self, row: u64) -> InputSettings {
        let encoding =
            self.encoding.as_deref().and_then(|label| encoding_rs::Encoding::for_label(label.as_bytes()));
        InputSettings {
            path: if self.shown_as == "-" {
                InputPath::Stdin { spool: self.file.clone() }
            } else {
                InputPath::File(self.file.clone())
            },
            format: self.format(),
            encoding: encoding.map_or(Encoding::Unicode, Encoding::Named),
            // A record that the run took is to be shown whatever its form.
            bad_rows: BadRows::Keep,
            ragged: if self.pad { Ragged::Pad } else { Ragged::Error },
            selection: Selection::Ranges(vec![(row, row)]),
            id_column: None,
            max_record: self.max_record,
            allow_empty: true,
        }
    }
}
