//! Gives the linker script.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo::rustc-link-arg=-T{folder}/link.x");
    println!("cargo::rerun-if-changed=link.x");
}
