//! What an outcome means for its sample, its key and the run.

use std::time::Duration;

use crate::base::{AttemptKey, Moment, Ticket};
use crate::model::{Ending, Failure, FailureClass, KeyFault, Reason, Vote};
use crate::policy::breaker::BreakerVerdict;
use crate::policy::budget::Settlement;
use crate::policy::keys::FaultRuling;
use crate::policy::retry::backoff;
use crate::policy::scheduler::machine::Scheduler;
use crate::policy::scheduler::plan::{Assignment, Feedback, Halt, Notice, Outcome, Ruling};
use crate::policy::scheduler::window::UnitPhase;

/// What the sample does next.
#[derive(Clone, Copy)]
enum Next {
    Close(Reason),
    Ready,
    After(Duration),
    Stay,
}

impl Scheduler {
    /// A request has ended. Says how its attempt is to be kept.
    pub fn on_outcome(
        &mut self,
        now: Moment,
        assignment: Assignment,
        outcome: Outcome,
        feedback: Feedback,
    ) -> Ruling {
        let Assignment { ticket, key, .. } = assignment;
        self.in_flight = self.in_flight.saturating_sub(1);
        self.keys.on_end(now, key, ticket, feedback.pressure, feedback.tokens);
        let bound = self.bounds.remove(&ticket);
        if let Some(budget) = &mut self.budget
            && budget.settle(bound.unwrap_or_default(), feedback.settlement)
        {
            self.due = Some(Halt::Overbilled);
        }
        self.keep_leftover(ticket.row, bound.unwrap_or_default(), feedback.settlement);
        let possible = bound.filter(|_| feedback.settlement == Settlement::Lost);
        if let (Some(number), Some(tokens)) = (self.paced.remove(&ticket), feedback.tokens) {
            self.pace.settle(number, tokens);
        }
        if let Some(unit) = self.rows.get_mut(&ticket.row).and_then(|row| row.unit(ticket.sample)) {
            match outcome {
                Outcome::Valid(_) | Outcome::Unusable(_) => unit.extra = feedback.repair_extra,
                // What was to be repaired still is.
                _ => unit.repair_next = assignment.repair,
            }
        }
        Ruling { possible, ..self.on_end(now, assignment, outcome) }
    }

    fn on_end(&mut self, now: Moment, assignment: Assignment, outcome: Outcome) -> Ruling {
        let Assignment { ticket, key, .. } = assignment;
        if let Some(unit) = self.rows.get_mut(&ticket.row).and_then(|row| row.unit(ticket.sample)) {
            unit.phase = UnitPhase::Idle;
            unit.next_attempt = ticket.attempt + 1;
            // Beyond this the store has no number for another attempt.
            if ticket.attempt >= AttemptKey::MAX_ATTEMPT
                && !matches!(outcome, Outcome::Valid(_) | Outcome::Aborted | Outcome::Unsent(_))
            {
                self.keys.on_no_content(key, ticket, false);
                return self.rule(
                    now,
                    ticket,
                    Ending::Failed(Reason::RateLimited),
                    Next::Close(Reason::RateLimited),
                );
            }
        }
        match outcome {
            Outcome::Unsent(until) => self.on_unsent(now, assignment, until),
            Outcome::Valid(vote) => self.on_valid(key, ticket, vote),
            Outcome::Unusable(reason) => self.on_unusable(now, key, ticket, reason),
            Outcome::Failed(failure) => self.on_failure(now, key, ticket, &failure),
            Outcome::Aborted => {
                self.keys.on_no_content(key, ticket, false);
                self.breaker.on_inconclusive();
                self.rule(now, ticket, Ending::Abandoned, Next::Stay)
            }
        }
    }

    /// Nothing was sent: the attempt has not been, and the key waits.
    fn on_unsent(&mut self, now: Moment, assignment: Assignment, until: Moment) -> Ruling {
        let Assignment { ticket, key, .. } = assignment;
        self.breaker.on_inconclusive();
        self.keys.on_no_content(key, ticket, true);
        self.keys.on_wait(key, now, until.since(now));
        if let Some(unit) = self.rows.get_mut(&ticket.row).and_then(|row| row.unit(ticket.sample)) {
            unit.next_attempt = ticket.attempt;
        }
        self.rule(now, ticket, Ending::Abandoned, Next::Ready)
    }

    fn on_valid(&mut self, key: usize, ticket: Ticket, vote: Vote) -> Ruling {
        self.content(key);
        let source = AttemptKey::new(self.config.run, ticket).ok();
        if let (Some(unit), Some(source)) =
            (self.rows.get_mut(&ticket.row).and_then(|row| row.unit(ticket.sample)), source)
        {
            unit.close_valid(vote, source);
        }
        self.advance(ticket.row);
        Ruling { ending: Ending::Valid, repair_next: false, possible: None }
    }

    fn on_unusable(&mut self, now: Moment, key: usize, ticket: Ticket, reason: Reason) -> Ruling {
        let repair = self.config.repair;
        let again =
            self.rows.get_mut(&ticket.row).and_then(|row| row.unit(ticket.sample)).is_some_and(|unit| {
                let (made, most) = match reason {
                    Reason::InvalidAnswer => (&mut unit.repairs, repair),
                    Reason::Empty => (&mut unit.empties, 1),
                    _ => return false,
                };
                let again = *made < most;
                *made += 1;
                unit.repair_next = again && reason == Reason::InvalidAnswer;
                again
            });
        if matches!(reason, Reason::InvalidAnswer | Reason::Truncated) {
            self.content(key);
        } else {
            self.reply(true);
            self.keys.on_no_content(key, ticket, again);
        }
        if again {
            self.rule(now, ticket, Ending::Retried(reason), Next::Ready)
        } else {
            self.rule(now, ticket, Ending::Failed(reason), Next::Close(reason))
        }
    }

    fn on_failure(&mut self, now: Moment, key: usize, ticket: Ticket, failure: &Failure) -> Ruling {
        match &failure.class {
            FailureClass::Connection => self.on_transient(now, key, ticket, failure, Reason::Connection),
            FailureClass::Timeout { .. } => self.on_transient(now, key, ticket, failure, Reason::Timeout),
            FailureClass::Server => self.on_transient(now, key, ticket, failure, Reason::ServerError),
            FailureClass::Throttled => self.on_throttled(now, key, ticket, failure.wait),
            FailureClass::Key(fault) => self.on_key_fault(now, key, ticket, *fault, &failure.message),
            FailureClass::InvalidAnswer => self.on_unusable(now, key, ticket, Reason::InvalidAnswer),
            FailureClass::TooLong => self.on_final(now, key, ticket, Reason::TooLong),
            FailureClass::Policy => self.on_final(now, key, ticket, Reason::Refused),
            FailureClass::Rejected => {
                if let Some(row) = self.rows.get_mut(&ticket.row) {
                    row.rejection = Some(failure.message.clone());
                }
                self.on_final(now, key, ticket, Reason::Rejected)
            }
            FailureClass::UnknownModel => {
                self.reply(false);
                self.keys.on_no_content(key, ticket, false);
                self.due = Some(Halt::UnknownModel { message: failure.message.clone() });
                self.rule(now, ticket, Ending::Deferred(Reason::Rejected), Next::Stay)
            }
            FailureClass::Teaches(_) => {
                self.reply(false);
                self.keys.on_no_content(key, ticket, true);
                self.rule(now, ticket, Ending::Deferred(Reason::Rejected), Next::Ready)
            }
        }
    }

    /// The row is at fault: one request, and the next row may go.
    fn on_final(&mut self, now: Moment, key: usize, ticket: Ticket, reason: Reason) -> Ruling {
        self.reply(false);
        self.keys.on_no_content(key, ticket, false);
        self.rule(now, ticket, Ending::Failed(reason), Next::Close(reason))
    }

    fn on_transient(
        &mut self,
        now: Moment,
        key: usize,
        ticket: Ticket,
        failure: &Failure,
        reason: Reason,
    ) -> Ruling {
        // A time-out lets the next canary go; after other failures the canary itself is tried again.
        self.keys.on_no_content(key, ticket, reason != Reason::Timeout);
        let verdict = self.breaker.on_failure(now);
        match verdict {
            BreakerVerdict::GoOn | BreakerVerdict::StillOut => {}
            BreakerVerdict::NeverAnswered => {
                self.due = Some(Halt::Unreachable { message: failure.message.clone() });
            }
            BreakerVerdict::Pause => {
                self.notices.push_back(Notice::OutageBegins { message: failure.message.clone() });
            }
        }
        let epoch = self.answers;
        let limits = &self.config.retry;
        let total = matches!(failure.class, FailureClass::Timeout { total: true });
        let mut tries = 1;
        let mut spent = true;
        if let Some(unit) = self.rows.get_mut(&ticket.row).and_then(|row| row.unit(ticket.sample)) {
            unit.count_try(epoch);
            unit.timeouts += u32::from(total);
            tries = unit.tries;
            // A total time-out is tried once more only.
            spent = unit.tries >= limits.attempts || unit.timeouts >= 2;
        }
        let in_outage = verdict != BreakerVerdict::GoOn;
        // A server that asks for more than the run sits out is as good as gone for this row.
        let too_long = failure.wait.is_some_and(|wait| wait > limits.max_wait);
        let ruling = if (spent && !in_outage) || too_long {
            self.keys.release((ticket.row, ticket.sample));
            self.rule(now, ticket, Ending::Failed(reason), Next::Close(reason))
        } else {
            let wait = backoff(limits, self.config.seed, ticket, tries, failure.wait);
            self.rule(now, ticket, Ending::Retried(reason), Next::After(wait))
        };
        if in_outage {
            self.reopen_held();
        }
        ruling
    }

    fn on_throttled(&mut self, now: Moment, key: usize, ticket: Ticket, wait: Option<Duration>) -> Ruling {
        self.breaker.on_inconclusive();
        if let Some(wait) = wait {
            let until = self.keys.on_wait(key, now, wait);
            self.notices.push_back(Notice::KeyWaits { key, until });
        }
        if self.config.retry.throttle_patience.is_zero() {
            self.keys.on_no_content(key, ticket, false);
            let reason = Reason::RateLimited;
            return self.rule(now, ticket, Ending::Failed(reason), Next::Close(reason));
        }
        self.throttled_since.get_or_insert(now);
        self.keys.on_no_content(key, ticket, true);
        if wait.is_some() {
            return self.rule(now, ticket, Ending::Throttled, Next::Ready);
        }
        // No hint: only this row backs off.
        let mut throttles = 1;
        if let Some(unit) = self.rows.get_mut(&ticket.row).and_then(|row| row.unit(ticket.sample)) {
            unit.throttles += 1;
            throttles = unit.throttles;
        }
        let wait = backoff(&self.config.retry, self.config.seed, ticket, throttles, None);
        self.rule(now, ticket, Ending::Throttled, Next::After(wait))
    }

    fn on_key_fault(
        &mut self,
        now: Moment,
        key: usize,
        ticket: Ticket,
        fault: KeyFault,
        message: &str,
    ) -> Ruling {
        self.breaker.on_inconclusive();
        let ruling = self.keys.on_fault(key, ticket, fault, now);
        self.keys.on_no_content(key, ticket, false);
        let message = message.to_owned();
        match ruling {
            FaultRuling::Cools => self.notices.push_back(Notice::KeyCools { key, fault, message }),
            FaultRuling::Out => self.notices.push_back(Notice::KeyOut { key, fault, message }),
            FaultRuling::Known => {}
        }
        self.rule(now, ticket, Ending::Deferred(Reason::Rejected), Next::Ready)
    }

    /// A reply with content came: the key works, the service works.
    fn content(&mut self, key: usize) {
        if self.keys.on_content(key) {
            self.notices.push_back(Notice::FirstContent { key });
        }
        self.reply(true);
    }

    /// A reply came that shows that the service works.
    fn reply(&mut self, answered: bool) {
        if answered {
            self.answers += 1;
            self.throttled_since = None;
        }
        if self.breaker.on_reply(answered) {
            self.notices.push_back(Notice::OutageEnds);
        }
        self.finish_held();
    }

    fn rule(&mut self, now: Moment, ticket: Ticket, ending: Ending, next: Next) -> Ruling {
        let source = AttemptKey::new(self.config.run, ticket).ok();
        let unit_of = (ticket.row, ticket.sample);
        let stopping = self.is_stopping();
        let Some(unit) = self.rows.get_mut(&ticket.row).and_then(|row| row.unit(ticket.sample)) else {
            return Ruling { ending, repair_next: false, possible: None };
        };
        match next {
            Next::Close(reason) => {
                if let Some(source) = source {
                    unit.close_failed(reason, source);
                }
            }
            Next::Ready if !stopping => self.make_ready(unit_of.0, unit_of.1),
            Next::After(wait) if !stopping => {
                unit.phase = UnitPhase::Waiting;
                self.timers.insert((now.after(wait), unit_of.0, unit_of.1));
            }
            Next::Ready | Next::After(_) | Next::Stay => {}
        }
        self.advance(ticket.row);
        let repair_next = self
            .rows
            .get_mut(&ticket.row)
            .and_then(|row| row.unit(ticket.sample))
            .is_some_and(|u| u.repair_next);
        Ruling { ending, repair_next, possible: None }
    }
}
