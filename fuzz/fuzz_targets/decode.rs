//! Whatever a host writes, a line costs at most one error, which says something.

#![no_main]

use libfuzzer_sys::fuzz_target;
use qwen_dialects::decode;

fuzz_target!(|data: &[u8]| {
    for line in data.split(|byte| *byte == b'\n') {
        if let Err(error) = decode(line) {
            assert!(!error.message.is_empty() && !error.code.is_empty());
        }
    }
});
