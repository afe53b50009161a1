//! The shapes of well-known keys: a public head, and a secret body.

/// The format of one kind of key.
pub(super) struct Shape {
    /// The public prefix of the key.
    pub head: &'static [u8],
    /// Match only at the start of a word, because the head also occurs inside ordinary words.
    pub alone: bool,
    body: Body,
}

enum Body {
    /// At least this many characters of a class.
    Run(Class, usize),
    /// Like [`Body::Run`], but not only words joined by dashes.
    Random(Class, usize),
    /// Exactly this many characters of a class, not followed by a letter or digit.
    Exact(Class, usize),
    /// At least this many characters of a class, behind `=` or `:` with blanks and quotes.
    Assigned(Class, usize),
    /// The rest of a JSON Web Token: two parts or three, with dots between.
    Token,
    /// The rest of a private key in PEM.
    PrivateKey,
}

/// The characters that a body may consist of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Class {
    Capitals,
    Alphanumeric,
    Word,
    Dashed,
    WordDash,
    Token,
    Bearer,
}

const fn shape(head: &'static str, alone: bool, body: Body) -> Shape {
    Shape { head: head.as_bytes(), alone, body }
}

pub(super) const SHAPES: &[Shape] = &[
    // OpenAI, Anthropic, DashScope and others that use the same prefix.
    shape("sk-", true, Body::Random(Class::WordDash, 16)),
    shape("sk_live_", false, Body::Run(Class::Alphanumeric, 16)),
    shape("rk_live_", false, Body::Run(Class::Alphanumeric, 16)),
    // GitHub, GitLab
    shape("ghp_", false, Body::Run(Class::Alphanumeric, 20)),
    shape("gho_", false, Body::Run(Class::Alphanumeric, 20)),
    shape("ghu_", false, Body::Run(Class::Alphanumeric, 20)),
    shape("ghs_", false, Body::Run(Class::Alphanumeric, 20)),
    shape("ghr_", false, Body::Run(Class::Alphanumeric, 20)),
    shape("github_pat_", false, Body::Run(Class::Word, 20)),
    shape("glpat-", false, Body::Run(Class::WordDash, 16)),
    // Amazon, Google
    shape("AKIA", true, Body::Exact(Class::Capitals, 16)),
    shape("ASIA", true, Body::Exact(Class::Capitals, 16)),
    shape("AIza", true, Body::Run(Class::WordDash, 30)),
    shape("ya29.", true, Body::Run(Class::WordDash, 20)),
    shape("GOCSPX-", true, Body::Run(Class::WordDash, 20)),
    shape("aws_secret_access_key", false, Body::Assigned(Class::Bearer, 40)),
    shape("AWS_SECRET_ACCESS_KEY", false, Body::Assigned(Class::Bearer, 40)),
    shape("SecretAccessKey", false, Body::Assigned(Class::Bearer, 40)),
    // Alibaba Cloud, Azure, DigitalOcean
    shape("LTAI", true, Body::Run(Class::Alphanumeric, 16)),
    shape("AccountKey", true, Body::Assigned(Class::Bearer, 40)),
    shape("dop_v1_", true, Body::Run(Class::Alphanumeric, 40)),
    // Slack, Hugging Face, npm, PyPI, Docker, Vault, SendGrid, Groq
    shape("xoxa-", false, Body::Run(Class::Dashed, 10)),
    shape("xoxb-", false, Body::Run(Class::Dashed, 10)),
    shape("xoxp-", false, Body::Run(Class::Dashed, 10)),
    shape("xoxs-", false, Body::Run(Class::Dashed, 10)),
    shape("hf_", true, Body::Run(Class::Alphanumeric, 20)),
    shape("npm_", true, Body::Run(Class::Alphanumeric, 30)),
    shape("pypi-AgE", true, Body::Run(Class::WordDash, 30)),
    shape("xapp-", true, Body::Run(Class::Dashed, 20)),
    shape("dckr_pat_", true, Body::Run(Class::WordDash, 20)),
    shape("hvs.", true, Body::Run(Class::WordDash, 20)),
    shape("SG.", true, Body::Run(Class::Token, 60)),
    shape("gsk_", true, Body::Run(Class::Alphanumeric, 30)),
    // Any
    shape("Bearer ", false, Body::Run(Class::Bearer, 16)),
    shape("bearer ", false, Body::Run(Class::Bearer, 16)),
    shape("eyJ", true, Body::Token),
    shape("-----BEGIN ", false, Body::PrivateKey),
];

/// A body that is still undecided after this many characters is not a key.
const MAX_UNDECIDED: usize = 256;
/// The same for the first part of a JSON Web Token, which can be long.
const MAX_TOKEN_HEADER: usize = 1024;
/// What may stand between a name and its value, and at most how many characters of it.
const ASSIGNMENT: &[u8] = b" \t=:\"'\\";
const MAX_ASSIGNMENT: usize = 16;
/// Longest label of a PEM private key, in bytes.
const LABEL: usize = 48;
/// A private key without an end line is redacted up to this many bytes.
const PRIVATE_KEY: usize = 32 * 1024;

/// Result of matching a shape.
#[derive(Debug)]
pub(super) enum Seen {
    No,
    /// The text ends before the match is decided.
    More,
    /// The first bytes decided the match, of which the first `public` ones may be shown; `rest` matches the
    /// remainder of the key.
    Key {
        public: usize,
        decided: usize,
        rest: Rest,
    },
}

impl Shape {
    /// Matches this shape at the start of `text`. `last` means that no more text follows.
    pub fn match_at(&self, text: &[u8], last: bool) -> Seen {
        let shared = self.head.len().min(text.len());
        if text[..shared] != self.head[..shared] {
            return Seen::No;
        }
        if shared < self.head.len() {
            return more(last);
        }
        let body = &text[shared..];
        let key = |length: usize, rest| Seen::Key { public: shared, decided: shared + length, rest };
        match self.body {
            Body::Run(class, least) => match run(body, class, least) {
                length if length == least => key(length, Rest::Run(class)),
                length if length == body.len() => more(last),
                _ => Seen::No,
            },
            Body::Random(class, least) => match random(body, class, least) {
                Random::Yes(length) => key(length, Rest::Run(class)),
                Random::Unsure => more(last),
                Random::No => Seen::No,
            },
            Body::Exact(class, length) => match body.get(length) {
                _ if run(body, class, length) < length.min(body.len()) => Seen::No,
                Some(after) if after.is_ascii_alphanumeric() => Seen::No,
                Some(_) => key(length, Rest::Ended),
                None if last && body.len() == length => key(length, Rest::Ended),
                None => more(last),
            },
            Body::Assigned(class, least) => {
                let sign =
                    body.iter().take(MAX_ASSIGNMENT).take_while(|byte| ASSIGNMENT.contains(byte)).count();
                let (sign, value) = body.split_at(sign);
                let assigns = sign.iter().any(|byte| matches!(byte, b'=' | b':'));
                let public = shared + sign.len();
                match run(value, class, least) {
                    _ if !value.is_empty() && !assigns => Seen::No,
                    length if length == least => {
                        Seen::Key { public, decided: public + length, rest: Rest::Run(class) }
                    }
                    length if length == value.len() && sign.len() < MAX_ASSIGNMENT => more(last),
                    _ => Seen::No,
                }
            }
            Body::Token => match run(body, Class::WordDash, MAX_TOKEN_HEADER) {
                first if first == body.len() => more(last),
                first if first < 5 || body.get(first) != Some(&b'.') => Seen::No,
                first => {
                    let second = &body[first + 1..];
                    match run(second, Class::WordDash, 8) {
                        8 => key(first + 1 + 8, Rest::Run(Class::Token)),
                        length if length == second.len() => more(last),
                        _ => Seen::No,
                    }
                }
            },
            Body::PrivateKey => {
                let label =
                    body.iter().take(LABEL).take_while(|b| matches!(b, b'A'..=b'Z' | b'0'..=b'9' | b' '));
                let (label, after) = body.split_at(label.count());
                let dashes = run_of(after, b'-', 5);
                if label.len() == LABEL {
                    return Seen::No;
                }
                if dashes < 5 && dashes == after.len() {
                    return more(last);
                }
                let private = label.windows(11).any(|words| words == b"PRIVATE KEY");
                if dashes == 5 && private {
                    key(label.len() + 5, Rest::PrivateKey(PrivateKey::default()))
                } else {
                    Seen::No
                }
            }
        }
    }
}

fn more(last: bool) -> Seen {
    if last { Seen::No } else { Seen::More }
}

/// Counts the characters of `class` at the start of `text`, up to `most`.
fn run(text: &[u8], class: Class, most: usize) -> usize {
    text.iter().take(most).take_while(|b| class.has(**b)).count()
}

fn run_of(text: &[u8], byte: u8, most: usize) -> usize {
    text.iter().take(most).take_while(|b| **b == byte).count()
}

enum Random {
    No,
    Unsure,
    Yes(usize),
}

/// A key contains digits, capitals or a long run of letters; `sk-some-class-name` does not.
fn random(text: &[u8], class: Class, least: usize) -> Random {
    let (mut telling, mut row) = (false, 0);
    for (at, &byte) in text.iter().enumerate() {
        if !class.has(byte) || at >= MAX_UNDECIDED {
            return Random::No;
        }
        row = if byte.is_ascii_alphanumeric() { row + 1 } else { 0 };
        telling |= byte.is_ascii_digit() || byte.is_ascii_uppercase() || row >= 16;
        if telling && at + 1 >= least {
            return Random::Yes(at + 1);
        }
    }
    Random::Unsure
}

impl Class {
    fn has(self, byte: u8) -> bool {
        let alphanumeric = byte.is_ascii_alphanumeric();
        match self {
            Self::Capitals => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Alphanumeric => alphanumeric,
            Self::Word => alphanumeric || byte == b'_',
            Self::Dashed => alphanumeric || byte == b'-',
            Self::WordDash => alphanumeric || matches!(byte, b'_' | b'-'),
            Self::Token => alphanumeric || matches!(byte, b'_' | b'-' | b'.'),
            Self::Bearer => alphanumeric || matches!(byte, b'.' | b'_' | b'~' | b'+' | b'/' | b'=' | b'-'),
        }
    }
}

/// Matches the remainder of a key after its start was recognised. None of its text has to be buffered.
#[derive(Debug, Clone)]
pub(super) enum Rest {
    Ended,
    Run(Class),
    PrivateKey(PrivateKey),
}

impl Rest {
    /// Returns the index in `text` where the key ends, or `None` if it continues after `text`.
    pub fn end(&mut self, text: &[u8]) -> Option<usize> {
        match self {
            Self::Ended => Some(0),
            Self::Run(class) => text.iter().position(|b| !class.has(*b)),
            Self::PrivateKey(key) => text.iter().position(|b| !key.takes(*b)),
        }
    }
}

/// Within a private key: lines of base64, perhaps headers, and the closing line.
#[derive(Debug, Clone, Default)]
pub(super) struct PrivateKey {
    taken: usize,
    before: [u8; 2],
    dashes: u8,
    /// How much of `END` was read after five dashes; at three the closing line has begun.
    closing: u8,
    closed: bool,
}

impl PrivateKey {
    /// True if `byte` continues the key.
    fn takes(&mut self, byte: u8) -> bool {
        let [earlier, before] = self.before;
        let escaped = earlier == b'\\';
        let belongs = match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' | b'=' | b'-' => true,
            b'\n' | b'\r' | b'\t' | b'\\' | b':' | b',' => true,
            // A space between two words occurs only in the closing line; elsewhere it indents or follows a
            // colon.
            b' ' => self.closing == 3 || escaped || !before.is_ascii_alphanumeric(),
            _ => false,
        };
        if !belongs || self.closed || self.taken >= PRIVATE_KEY {
            return false;
        }
        self.taken += 1;
        self.before = [before, byte];
        if self.closing < 3 {
            let expected = b"END"[usize::from(self.closing)];
            self.closing = match byte {
                _ if byte == expected && (self.closing > 0 || self.dashes >= 5) => self.closing + 1,
                _ => 0,
            };
        }
        self.dashes = if byte == b'-' { self.dashes.saturating_add(1) } else { 0 };
        self.closed = self.closing == 3 && self.dashes >= 5;
        true
    }
}
