//! Releases the pages of the program's own code while they are not needed.
//!
//! Code is mapped in as it runs, together with surrounding pages, so the start and a turn touch most of the
//! program. An idle worker runs almost none of it. The kernel maps pages from the page cache again when they
//! are needed.
#![expect(unsafe_code, reason = "only the linker knows where the code is, and only the kernel can unmap it")]

use std::future::poll_fn;
use std::pin::Pin;

use rustix::mm::{Advice, madvise};

/// The largest page size of any kernel. It is a multiple of the smaller ones.
const LARGEST_PAGE: usize = 64 * 1024;

// SAFETY: the linker defines both symbols; only their addresses are used.
unsafe extern "C" {
    /// The start of the program, defined by the linker.
    #[link_name = "__executable_start"]
    static START: u8;
    /// The end of its code.
    #[link_name = "etext"]
    static END: u8;
}

/// Unmaps the code and the constants before it.
pub fn release() {
    let (start, end) = (&raw const START, &raw const END);
    let start = start.with_addr(start.addr().next_multiple_of(LARGEST_PAGE));
    let length = (end.addr() / LARGEST_PAGE * LARGEST_PAGE).saturating_sub(start.addr());
    // If the kernel refuses, the pages stay mapped.
    // SAFETY: everything between the two symbols is mapped from the program's file and never written, so
    // later reads return the same bytes. Data and relocations, which are private to the process, lie after
    // the end.
    let _ = unsafe { madvise(start.cast_mut().cast(), length, Advice::LinuxDontNeed) };
}

/// Runs `work`, and unmaps the code when it has to wait for the first time. For a turn that is the wait for
/// the model, which takes longer than everything else, and what reads the answer is other code than what
/// composed the request.
pub async fn release_at_first_wait<T>(mut work: Pin<&mut impl Future<Output = T>>) -> T {
    let mut has_waited = false;
    poll_fn(|context| {
        let polled = work.as_mut().poll(context);
        if polled.is_pending() && !std::mem::replace(&mut has_waited, true) {
            release();
        }
        polled
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::release;

    /// The size of mapped files in kilobytes.
    fn mapped() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssFile:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    #[test]
    fn released_code_pages_are_loaded_again_when_needed() {
        let text = include_str!("code_pages.rs");
        let before = (text.len(), text.bytes().map(u64::from).sum::<u64>(), mapped());
        release();
        assert!(mapped() < before.2, "nothing was given back");
        assert_eq!((text.len(), text.bytes().map(u64::from).sum::<u64>()), (before.0, before.1));
    }
}
