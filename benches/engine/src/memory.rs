//! What the process takes, where the system says so (Linux).

/// Memory in bytes: now, and at the most so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Resident now.
    pub now_bytes: u64,
    /// The most that was ever resident.
    pub peak_bytes: u64,
}

impl Memory {
    /// Of this process; zeros where the system does not say.
    pub fn read() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let bytes = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field))?;
            line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
        };
        Self { now_bytes: bytes("VmRSS:").unwrap_or_default(), peak_bytes: bytes("VmHWM:").unwrap_or_default() }
    }

    /// The peak is that from now on, where the system allows it.
    pub fn forget_peak() {
        // Elsewhere the peak is that of the whole process, as it would be without this.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
    }
}
