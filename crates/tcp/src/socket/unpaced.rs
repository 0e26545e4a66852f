//! A build without algorithms that go by rates: the questions of `pace` have fixed answers.

use super::{Context, Socket, ack::AckKind};
use crate::send::Delivered;

#[expect(
    clippy::unused_self,
    clippy::needless_pass_by_ref_mut,
    reason = "the questions are those of the build that paces"
)]
impl Socket {
    pub(super) const fn take_samples(&mut self) {}

    pub(super) const fn delivery_is_unmeasured(&self) -> bool {
        true
    }

    pub(super) const fn delivered_and_lost(&self) -> (u32, u32) {
        (0, 0)
    }

    pub(super) const fn pacing(&self) -> Option<u32> {
        None
    }

    pub(super) const fn may_depart(&mut self, _: &Context<'_, '_>) -> bool {
        true
    }

    pub(super) const fn departs(&mut self, _: &Context<'_, '_>, _: u32, _: u32) {}

    pub(super) fn device_burst(&self, cx: &Context<'_, '_>, mss: u32) -> u32 {
        cx.burst.max(mss)
    }

    pub(super) const fn note_application_limit(&mut self, _: u32) {}

    pub(super) const fn tell_restart(&mut self, _: &Context<'_, '_>) {}

    pub(super) const fn tell_rate(&mut self, _: &Context<'_, '_>, _: &Delivered, _: u32, _: AckKind) {}
}
