//! An identifier of this machine, and its kernel.

/// Its name, and what the kernel drew when it was booted: two machines never have the same, and a machine has another
/// one after each boot. Empty where the kernel does not report it.
pub fn machine_name() -> (String, String) {
    let name = nix::unistd::gethostname().ok();
    let name = name.and_then(|name| name.into_string().ok());
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let boot_id = boot_id.unwrap_or_default().trim().to_owned();
    (name.unwrap_or_default(), boot_id)
}

/// The release of its kernel (`uname -r`); empty where the kernel does not report it.
pub fn kernel_release() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    release.unwrap_or_default().trim().to_owned()
}

/// A name that nothing else has, drawn by the kernel. Empty where it does not draw any.
pub fn unique_name() -> String {
    let drawn = std::fs::read_to_string("/proc/sys/kernel/random/uuid");
    drawn.unwrap_or_default().trim().to_owned()
}
