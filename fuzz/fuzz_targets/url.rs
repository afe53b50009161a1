//! Whatever is accepted as an address is written so that it is read the same again, here and by another
//! parser, and a location that is found there leads to such an address.

#![no_main]

use libfuzzer_sys::fuzz_target;
use qwen_http::Url;

fuzz_target!(|texts: (&str, &str)| {
    let Ok(url) = Url::parse(texts.0) else { return };
    check(&url);
    if let Ok(joined) = url.join(texts.1) {
        check(&joined);
    }
});

fn check(url: &Url) {
    let written = url.to_string();
    assert_eq!(Url::parse(&written).as_ref(), Ok(url), "{written}");
    let other: http::Uri = written.parse().unwrap_or_else(|error| panic!("{written}: {error}"));
    assert_eq!(other.host(), Some(url.host()), "{written}");
}
