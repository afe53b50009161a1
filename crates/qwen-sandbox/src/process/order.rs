//! An order: one message with all that an existing guardian needs to start another command.
//!
//! It is written before and read after the fork that made the guardian, so reading neither allocates nor
//! panics.

use std::ffi::{CStr, CString, c_char};
use std::ptr;

/// Longest order, in bytes. A larger command gets a newly forked guardian.
pub(super) const MAX_ORDER_BYTES: usize = 64 * 1024;
/// Most strings in an order, including the two null terminators of arguments and variables.
pub(super) const TEXTS: usize = 2 * 1024;
/// The first byte of an order.
pub(super) const ORDER: u8 = b'O';

/// A command in the kernel's format.
#[derive(Clone, Copy)]
pub(super) struct Texts<'a> {
    pub program: &'a CStr,
    pub cwd: &'a CStr,
    /// Ends with a null pointer.
    pub argv: &'a [*const c_char],
    /// Ends with a null pointer.
    pub envp: &'a [*const c_char],
}

/// Writes an order. Returns `None` if it would be too long.
pub(super) fn write(program: &CStr, cwd: &CStr, args: &[CString], env: &[CString]) -> Option<Vec<u8>> {
    if args.len() + env.len() + 2 > TEXTS {
        return None;
    }
    let mut order = Vec::with_capacity(4096);
    order.push(ORDER);
    order.extend(u32::try_from(args.len()).ok()?.to_ne_bytes());
    for text in [program, cwd].into_iter().chain(args.iter().chain(env).map(CString::as_c_str)) {
        order.extend_from_slice(text.to_bytes_with_nul());
        if order.len() > MAX_ORDER_BYTES {
            return None;
        }
    }
    Some(order)
}

/// Reads an order. `room` receives the pointers for `execve`.
pub(super) fn read<'a>(order: &'a [u8], room: &'a mut [*const c_char]) -> Option<Texts<'a>> {
    let (&args, texts) = order.strip_prefix(&[ORDER])?.split_first_chunk()?;
    let args = usize::try_from(u32::from_ne_bytes(args)).ok()?;
    let mut texts = texts.split_inclusive(|&byte| byte == 0);
    let mut next = || texts.next().and_then(|text| CStr::from_bytes_with_nul(text).ok());
    let (program, cwd) = (next()?, next()?);
    let (argv, envp) = room.split_at_mut_checked(args.checked_add(1)?)?;
    let (last, arguments) = argv.split_last_mut()?;
    for slot in arguments {
        *slot = next()?.as_ptr();
    }
    *last = ptr::null();
    let mut slots = envp.iter_mut();
    loop {
        let (slot, text) = (slots.next()?, next());
        *slot = text.map_or(ptr::null(), CStr::as_ptr);
        if text.is_none() {
            return Some(Texts { program, cwd, argv, envp });
        }
    }
}

#[cfg(test)]
#[expect(unsafe_code, reason = "what is handed to the kernel is read back")]
mod tests {
    use super::*;

    fn texts(pointers: &[*const c_char]) -> Vec<CString> {
        // SAFETY: `read` points into the order, which outlives this, and ends with a null.
        let text = |&pointer: &*const c_char| unsafe { CStr::from_ptr(pointer) }.to_owned();
        pointers.iter().take_while(|pointer| !pointer.is_null()).map(text).collect()
    }

    fn own(texts: &[&str]) -> Vec<CString> {
        texts.iter().map(|&text| CString::new(text).unwrap()).collect()
    }

    #[test]
    fn an_order_is_read_as_it_was_written() {
        for (args, env) in [
            (vec!["bash"], vec![]),
            (vec!["bash", "-c", ""], vec!["A=", "B=two words"]),
            (vec!["bash", "", "", "x\ny"], vec!["", "Ä=ö"]),
        ] {
            let (args, env) = (own(&args), own(&env));
            let order = write(c"/bin/bash", c"/some/place", &args, &env).unwrap();
            let mut room = vec![ptr::null(); TEXTS];
            let read = read(&order, &mut room).unwrap();
            assert_eq!((read.program, read.cwd), (c"/bin/bash", c"/some/place"));
            assert_eq!((texts(read.argv), texts(read.envp)), (args, env));
        }
    }

    #[test]
    fn an_order_that_does_not_fit_is_refused() {
        assert!(write(c"x", c"/", &own(&vec!["x"; TEXTS]), &[]).is_none());
        assert!(write(c"x", c"/", &[CString::new("x".repeat(MAX_ORDER_BYTES)).unwrap()], &[]).is_none());
    }

    proptest::proptest! {
        #[test]
        fn no_message_makes_reading_fail_badly(
            args in 0..5u32,
            texts in proptest::collection::vec(0..3u8, 0..20),
            room in 0..8usize,
        ) {
            let order: Vec<u8> = [ORDER].into_iter().chain(args.to_ne_bytes()).chain(texts).collect();
            for end in 0..order.len() {
                let mut room = vec![ptr::null(); room];
                if let Some(read) = read(&order[..end], &mut room) {
                    proptest::prop_assert!(read.argv.last().is_some_and(|last| last.is_null()));
                    proptest::prop_assert!(read.envp.iter().any(|pointer| pointer.is_null()));
                }
            }
        }
    }
}
