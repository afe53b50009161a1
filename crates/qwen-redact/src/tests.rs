//! Tests what is redacted, what is not, and that the result does not depend on how a text is split.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use proptest::prelude::*;

use super::*;

const VALUE: &str = "tr0ub4dor&3/x?y";
const OTHER: &str = "&3/x?yellow-submarine";
const LONG: &str =
    "The quick brown fox jumps over the lazy dog, and then it runs for quite a while, as keys do.";

fn redactor() -> Redactor {
    Redactor::new([VALUE, OTHER, LONG])
}

fn streamed(redactor: &Redactor, pieces: &[&str], mut stream: TextStream) -> String {
    let mut out = String::new();
    for piece in pieces {
        out.extend(stream.push(redactor, (*piece).into()));
    }
    out.extend(stream.finish(redactor));
    out
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let redactor = redactor();
    assert_eq!(redactor.redact(text), expected, "{text}");
    let letters: Vec<String> = text.chars().map(String::from).collect();
    let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
    assert_eq!(streamed(&redactor, &letters, TextStream::default()), expected, "letter by letter: {text}");
    for (at, _) in text.char_indices() {
        let (first, second) = text.split_at(at);
        assert_eq!(
            streamed(&redactor, &[first, second], TextStream::default()),
            expected,
            "cut at {at}: {text}"
        );
    }
}

#[test]
fn known_values_are_blotted_out_in_every_form() {
    check(&format!("a {VALUE} b"), "a t*** b");
    check(&format!("x{VALUE}{VALUE}y"), "xt***y");
    check("user:tr0ub4dor%263%2Fx%3Fy@host", "user:t***@host");
    check("user:tr0ub4dor%263%2fx%3fy@host", "user:t***@host");
    check("user:tr0ub4dor%263/x%3Fy@host", "user:t***@host");
    check("tr0ub4dor&3/x?", "tr0ub4dor&3/x?");
}

#[test]
fn values_that_overlap_are_blotted_out_together() {
    check("tr0ub4dor&3/x?yellow-submarine!", "t***!");
}

#[test]
fn base64_hides_nothing() {
    let redactor = redactor();
    for before in ["", "a", "ab", "abc", "user:"] {
        for after in ["", "\n", "zz"] {
            for encoded in [
                STANDARD.encode(format!("{before}{VALUE}{after}")),
                URL_SAFE.encode(format!("{before}{VALUE}{after}")),
            ] {
                let shown = redactor.redact(&encoded);
                assert!(shown.contains(REDACTION_MARK), "{encoded}: {shown}");
                let left = shown.split(REDACTION_MARK).map(str::len).max().unwrap_or_default();
                assert!(left <= encoded.len() - VALUE.len(), "{encoded}: {shown}");
            }
        }
    }
    // In the format of the `base64` program, 76 characters per line.
    let encoded = STANDARD.encode(format!("key={LONG}\n"));
    let lines: Vec<&str> =
        (0..encoded.len()).step_by(76).map(|at| &encoded[at..encoded.len().min(at + 76)]).collect();
    for line_break in ["\n", "\r\n", "\\n"] {
        let shown = redactor.redact(&lines.join(line_break)).into_owned();
        assert!(shown.len() < 24 && shown.contains(REDACTION_MARK), "{shown}");
    }
}

#[test]
fn json_stays_json() {
    let redactor = Redactor::new([r#"a","b":"cdefgh"#, "line one\nline two"]);
    let key = r#"{"SecretAccessKey" : "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}"#;
    assert_eq!(redactor.redact_json(key), r#"{"SecretAccessKey" : "***"}"#);
    for text in [r#"{"a":"x","x":"a","b":"cdefgh"}"#, r#"["line one\nline two"]"#, "[12345678]"] {
        let shown = redactor.redact_json(text);
        assert!(serde_json::from_str::<serde_json::Value>(&shown).is_ok(), "{shown}");
    }
    assert_eq!(redactor.redact_json(r#"["line one\nline two"]"#), r#"["l***"]"#);
    assert_eq!(redactor.redact("line one\nline two"), "l***");
}

#[test]
fn shapes_of_keys_are_known() {
    let pem = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEow+/=\nab==\n-----END RSA PRIVATE KEY-----";
    for (text, expected) in [
        ("key: sk-proj-aB3dE5fG7hI9jK1l ok", "key: sk-*** ok"),
        ("sk-ant-api03-aB3dE5fG7hI9-jK_1l", "sk-***"),
        ("sk-0123456789abcdef0123456789abcdef.", "sk-***."),
        ("key\\nsk-0123456789abcdef0\\n", "key\\nsk-***\\n"),
        ("密钥sk-0123456789abcdef0。", "密钥sk-***。"),
        ("x=ghp_16C7e42F292c6912E7710c838347Ae178B4a;", "x=ghp_***;"),
        ("gho_16C7e42F292c6912E7710c838347Ae178B4a", "gho_***"),
        ("github_pat_11ABCDEFG0123456789_abcdefghij", "github_pat_***"),
        ("glpat-aB3dE5fG7hI9jK1lmN2o", "glpat-***"),
        ("AKIAIOSFODNN7EXAMPLE", "AKIA***"),
        ("(AKIAIOSFODNN7EXAMPLE)", "(AKIA***)"),
        ("AIzaSyA-1234567890abcdefghijklmnopqrstu", "AIza***"),
        ("xoxb-123456789012-abcdef", "xoxb-***"),
        (
            "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n",
            "aws_secret_access_key = ***\n",
        ),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY ", "AWS_SECRET_ACCESS_KEY=*** "),
        (r#""SecretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY","#, r#""SecretAccessKey": "***","#),
        ("SG.aB3dE5fG7hI9jK1lmN2oPq.aB3dE5fG7hI9jK1lmN2oPqaB3dE5fG7hI9jK1lmN2oP", "SG.***"),
        ("dop_v1_0123456789abcdef0123456789abcdef0123456789abcdef", "dop_v1_***"),
        ("token: pypi-AgEIcHlwaS5vcmcCJDAwMDAwMDAwLTAwMDAtMDAwMC0w", "token: pypi-AgE***"),
        ("hvs.CAESIJ1Yabcdefghijklmnop", "hvs.***"),
        ("LTAI5tAbcdefghijklmnopqr", "LTAI***"),
        ("Authorization: Bearer abcdef0123456789==\r\n", "Authorization: Bearer ***\r\n"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl\"", "eyJ***\""),
        (pem, "-----BEGIN ***"),
        (&pem.replace('\n', "\\n"), "-----BEGIN ***"),
        (&format!("a {pem}\nand more"), "a -----BEGIN ***\nand more"),
        (&format!("{pem}\n{pem}"), "-----BEGIN ***\n-----BEGIN ***"),
    ] {
        check(text, expected);
    }
}

#[test]
fn ordinary_text_is_left_alone() {
    for text in [
        "",
        "task-list-of-things-to-do-1234567890",
        ".sk-folding-cube-container { }",
        "sk-short1",
        "disk-0123456789abcdef0123456789abcdef",
        "AKIAIOSFODNN7EXAMPLES",
        "eyJhbGciOiJIUzI1NiJ9 is base64",
        "eyJ.eyJ.eyJ.eyJ",
        "bearer of bad news",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "---------------------------------------------",
        "ghp_ is how they start, gho_too",
        "aws_secret_access_key = <your key>",
        "aws_secret_access_key is forty characters long, as in the manual of that service",
        "export AWS_SECRET_ACCESS_KEY=$(pass show aws/secret-key-of-the-account-with-a-long-name)",
        "const aws_secret_access_key_of_the_other_account_with_a_long_name = 1;",
        "pypi-publish and dop_v1_ and SG.mp4 and gsk_ring",
        "Überall wächst Grün; 日本語のテキスト",
    ] {
        check(text, text);
    }
    let redactor = Redactor::new(["short", "password", "1234567890", "aaaaaaaaaaaa", "Changeme"]);
    let text = "short password 1234567890 aaaaaaaaaaaa Changeme";
    assert_eq!(redactor.redact(text), text);
}

#[test]
fn a_value_of_many_lines_is_found_line_by_line() {
    let redactor = Redactor::new(["first line of the key\nsecond line of the key\n"]);
    assert_eq!(redactor.redact("> second line of the key <"), "> s*** <");
}

#[test]
fn a_long_value_is_found_in_pieces() {
    let value: String = (0..2000u32).map(|n| char::from(b'!' + (n * 7 % 90) as u8)).collect();
    let redactor = Redactor::new([&value]);
    assert_eq!(redactor.redact(&format!("<<{value}>>")), "<<!***>>");
}

#[test]
fn text_that_cannot_become_a_secret_is_released_at_once() {
    let redactor = redactor();
    let mut stream = TextStream::default();
    for piece in ["Hello", " wor", "ld", " t", "est", ", s", "k", "-", " ---", "B", "e", "are"] {
        assert_eq!(stream.push(&redactor, piece.into()).as_deref(), Some(piece));
    }
    // Two matching letters are enough to hold text back.
    assert_eq!(stream.push(&redactor, "tr".into()).as_deref(), Some("t"));
    assert_eq!(stream.push(&redactor, "ain".into()).as_deref(), Some("rain"));
}

#[test]
fn an_early_release_still_redacts_the_rest() {
    let redactor = redactor();
    let mut stream = TextStream::default();
    assert_eq!(stream.push(&redactor, "tr0ub4".into()).as_deref(), Some("t"));
    assert_eq!(stream.release().as_deref(), Some("r0ub4"));
    assert_eq!(stream.release(), None);
    assert_eq!(stream.push(&redactor, "dor&3/x?y!".into()).as_deref(), Some("***!"));
}

#[test]
fn the_text_held_back_is_bounded() {
    let redactor = redactor();
    for opening in ["sk-", "Bearer ", "eyJ", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "ghp_"] {
        let mut stream = TextStream::default();
        stream.push(&redactor, opening.into());
        for _ in 0..4096 {
            stream.push(&redactor, "a-".into());
            assert!(stream.pending_bytes() <= 1100, "{opening}: {}", stream.pending_bytes());
        }
    }
}

/// Texts composed of secrets, parts of secrets and other text.
fn texts() -> impl Strategy<Value = String> {
    let encoded = STANDARD.encode(format!("user:{LONG}"));
    let part = prop_oneof![
        Just(VALUE.to_owned()),
        Just(OTHER.to_owned()),
        Just(LONG.to_owned()),
        Just(encoded.clone()),
        Just(format!("{}\n{}", &encoded[..40], &encoded[40..])),
        (0..LONG.len()).prop_map(|at| LONG[..at].to_owned()),
        (0..VALUE.len()).prop_map(|at| VALUE[..at].to_owned()),
        Just("sk-proj-aB3dE5fG7hI9jK1l".to_owned()),
        Just("ghp_16C7e42F292c6912E7710c838347Ae178B4a".to_owned()),
        Just("Bearer ".to_owned()),
        Just("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln".to_owned()),
        Just("AKIAIOSFODNN7EXAMPLE".to_owned()),
        Just("-----BEGIN PRIVATE KEY-----\nMIIEow\n-----END PRIVATE KEY-----".to_owned()),
        Just("-----BEGIN ".to_owned()),
        Just("-----END".to_owned()),
        "[ \nskey-]{0,6}",
        "[a-zA-Z0-9 ._ä日-]{0,8}",
    ];
    prop::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn it_does_not_matter_how_a_text_is_cut(
        text in texts(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        json in any::<bool>(),
    ) {
        let redactor = redactor();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).filter(|at| text.is_char_boundary(*at)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&str> = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
        let (whole, stream) = if json {
            (redactor.redact_json(&text), TextStream::json())
        } else {
            (redactor.redact(&text), TextStream::default())
        };
        prop_assert_eq!(&streamed(&redactor, &pieces, stream), &*whole);
        for secret in [VALUE, OTHER, LONG] {
            prop_assert!(!whole.contains(secret), "{}", whole);
        }
    }
}
