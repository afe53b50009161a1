//! Whatever a settings file says, it is read or refused with an error that says where, and reading it twice
//! says the same.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let read = qwen::read_settings(text);
    assert_eq!(read, qwen::read_settings(text));
    if let Err(error) = read {
        assert!(error.contains("settings.json"), "an error names its file: {error}");
    }
});
