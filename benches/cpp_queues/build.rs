//! Compiles the bridge, with headers that `ci/setup bench` installs.

fn main() {
    println!("cargo::rerun-if-changed=src/bridge.cpp");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .file("src/bridge.cpp")
        // As they are used: without what they check of themselves in a debug build.
        .define("NDEBUG", None)
        .opt_level(3)
        .warnings(false)
        .compile("cpp_queues");
}
