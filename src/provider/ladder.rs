//! Forms of structured output, from the strongest down.

use crate::model::{Learned, Lesson, Structured};

/// The forms that a request may take. A form that somebody chose stands alone; `auto` goes down where the server
/// refuses what is above.
#[derive(Debug, Default)]
pub(super) struct Ladder {
    /// Each form with its number of steps from the top of the format's own ladder, in order. A form that a schema or
    /// a model rules out leaves its number free: what is learned belongs to a model, whatever the schema.
    rungs: Vec<(u8, Structured)>,
}

impl Ladder {
    /// No form: free text.
    pub(super) fn none() -> Self {
        Self::default()
    }

    /// One form only.
    pub(super) fn chosen(form: Structured) -> Self {
        Self { rungs: vec![(0, form)] }
    }

    /// Those of these forms that can be sent; the number of each is its place among all.
    pub(super) fn of<const N: usize>(forms: [(Structured, bool); N]) -> Self {
        let numbered = (0..).zip(forms);
        Self {
            rungs: numbered
                .filter(|(_, (_, usable))| *usable)
                .map(|(steps, (form, _))| (steps, form))
                .collect(),
        }
    }

    /// The form to send; `None` for free text.
    pub(super) fn form(&self, learned: &Learned) -> Option<Structured> {
        self.rungs.get(self.place(learned)).map(|(_, form)| *form)
    }

    /// The lesson of a refused form, if there is a weaker one.
    pub(super) fn weaker(&self, learned: &Learned) -> Option<Lesson> {
        let place = self.place(learned);
        let (_, refused) = *self.rungs.get(place)?;
        let (steps, next) = *self.rungs.get(place + 1)?;
        Some(Lesson::WeakerStructured { steps, refused, next })
    }

    fn place(&self, learned: &Learned) -> usize {
        let reached = self.rungs.iter().position(|(steps, _)| *steps >= learned.structured_steps);
        reached.unwrap_or(self.rungs.len().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Structured::{JsonSchema, Prompt, Tool};

    fn steps(structured_steps: u8) -> Learned {
        Learned { structured_steps, ..Learned::default() }
    }

    #[test]
    fn it_goes_down_to_the_last_rung_and_ends() {
        let ladder = Ladder::of([(JsonSchema, true), (Tool, false), (Prompt, true)]);
        assert_eq!(ladder.form(&steps(0)), Some(JsonSchema));
        let lesson = ladder.weaker(&steps(0)).unwrap();
        assert_eq!(lesson, Lesson::WeakerStructured { steps: 2, refused: JsonSchema, next: Prompt });
        for learned in [1, 2, 9].map(steps) {
            assert_eq!((ladder.form(&learned), ladder.weaker(&learned)), (Some(Prompt), None));
        }
    }

    #[test]
    fn a_chosen_form_is_kept() {
        let ladder = Ladder::chosen(Tool);
        assert_eq!((ladder.form(&steps(2)), ladder.weaker(&steps(0))), (Some(Tool), None));
        assert_eq!((Ladder::none().form(&steps(1)), Ladder::none().weaker(&steps(0))), (None, None));
    }
}
