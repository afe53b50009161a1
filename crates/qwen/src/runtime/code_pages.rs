//! The pages of the program's own code, given back while nobody needs them.
//!
//! Code is mapped in as it runs, with much of what lies around it: starting up and a turn touch most of the program. A
//! worker that waits runs next to none of it. What is needed again comes back from the page cache by itself.
#![expect(unsafe_code, reason = "only the linker knows where the code is, and only the kernel can unmap it")]

use rustix::mm::{Advice, madvise};

/// No kernel has larger ones, and of smaller ones it is whole ones.
const LARGEST_PAGE: usize = 64 * 1024;

// SAFETY: the linker defines both symbols; only their addresses are used.
unsafe extern "C" {
    /// Where the program begins; the linker says so.
    #[link_name = "__executable_start"]
    static START: u8;
    /// Where its code ends.
    #[link_name = "etext"]
    static END: u8;
}

/// Unmaps the code and the constants before it.
pub fn release() {
    let (start, end) = (&raw const START, &raw const END);
    let start = start.with_addr(start.addr().next_multiple_of(LARGEST_PAGE));
    let length = (end.addr() / LARGEST_PAGE * LARGEST_PAGE).saturating_sub(start.addr());
    // Where the kernel does not want them back, they stay.
    // SAFETY: all between the two marks is mapped from the program's file and never written, so what is read there
    // later is what was there before. Data and relocations, which are our own, lie behind the end.
    let _ = unsafe { madvise(start.cast_mut().cast(), length, Advice::LinuxDontNeed) };
}

#[cfg(test)]
mod tests {
    use super::release;

    /// Kilobytes of files that are mapped in.
    fn mapped() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssFile:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    #[test]
    fn what_was_given_back_is_there_again_when_it_is_needed() {
        let text = include_str!("code_pages.rs");
        let before = (text.len(), text.bytes().map(u64::from).sum::<u64>(), mapped());
        release();
        assert!(mapped() < before.2, "nothing was given back");
        assert_eq!((text.len(), text.bytes().map(u64::from).sum::<u64>()), (before.0, before.1));
    }
}
