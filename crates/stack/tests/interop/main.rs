//! The engine against the TCP of the kernel that runs this test, over emulated paths. Without the right to make one, each
//! test says so and passes.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod device;
mod ethernet;
mod lives;
mod presets;
mod transfer;
mod world;
