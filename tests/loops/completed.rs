//! Send completions of what was posted, one each.

use hcabench::bench::hca::loops::control::Control;
use hcabench::bench::hca::loops::port::{Completion, CompletionPort, PollResult};

pub(crate) struct Completed<'a> {
    control: &'a Control,
    next: u32,
}

pub(crate) fn completed(control: &Control) -> Completed<'_> {
    Completed { control, next: 0 }
}

impl CompletionPort for Completed<'_> {
    #[inline(always)]
    fn poll(&mut self) -> PollResult {
        if self.next >= self.control.posted() {
            return PollResult::Empty;
        }
        self.next += 1;
        PollResult::Done(Completion {
            request: u64::from(self.next - 1),
            ..Completion::default()
        })
    }
}
