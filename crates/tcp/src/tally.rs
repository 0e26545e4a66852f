//! Counting that can be compiled out.

/// Counts, or, without the feature `counts`, nothing.
#[cfg(feature = "counts")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally<T>(T);

#[cfg(not(feature = "counts"))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally<T>(core::marker::PhantomData<T>);

#[cfg(feature = "counts")]
impl<T: Copy> Tally<T> {
    pub(crate) const fn new(nothing: T) -> Self {
        Self(nothing)
    }

    pub(crate) fn note(&mut self, count: impl FnOnce(&mut T)) {
        count(&mut self.0);
    }

    /// What was counted; `nothing` where nothing is.
    pub(crate) const fn or<'a>(&'a self, _nothing: &'a T) -> &'a T {
        &self.0
    }
}

#[cfg(not(feature = "counts"))]
#[expect(
    clippy::unused_self,
    clippy::needless_pass_by_ref_mut,
    reason = "the calls are those of the build that counts"
)]
impl<T: Copy> Tally<T> {
    pub(crate) const fn new(_: T) -> Self {
        Self(core::marker::PhantomData)
    }

    pub(crate) fn note(&mut self, _: impl FnOnce(&mut T)) {}

    pub(crate) const fn or<'a>(&'a self, nothing: &'a T) -> &'a T {
        nothing
    }
}
