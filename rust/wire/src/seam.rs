//! Recorded cases.

/// Answers a recorded case; `None` if its kind is not answered here.
///
/// # Errors
/// What is wrong with the case.
pub fn answer(_case: &[u8]) -> Result<Option<Vec<u8>>, String> {
    Ok(None)
}
