//! What a linker for macOS has to know of functions that come from the interpreter.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
