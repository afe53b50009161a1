//! The pages of the program's own code, given back while nobody needs them.
//!
//! Code is mapped in as it runs, with much of what lies around it: starting up and a turn touch most of the program. A
//! worker that waits runs next to none of it. What is needed again comes back from the page cache by itself.
#![expect(unsafe_code, reason = "only the linker knows where the code is, and only the kernel can unmap it")]

use rustix::mm::{Advice, madvise};

unsafe extern "C" {
    /// Where the program begins; the linker says so.
    #[link_name = "__executable_start"]
    static START: u8;
    /// Where its code ends.
    #[link_name = "etext"]
    static END: u8;
}

/// Unmaps the code and the constants before it.
pub fn give_back() {
    let page = rustix::param::page_size();
    let (start, end) = (&raw const START, &raw const END);
    let start = start.with_addr(start.addr().next_multiple_of(page));
    let length = (end.addr() / page * page).saturating_sub(start.addr());
    // SAFETY: all between the two marks is mapped from the program's file and never written, so what is read there later
    // is what was there before. Data and relocations, which are our own, lie behind the end.
    // Where the kernel does not want them back, they stay.
    let _ = unsafe { madvise(start.cast_mut().cast(), length, Advice::LinuxDontNeed) };
}
