//! Character references of HTML: `&amp;`, `&#8364;`, `&#x20ac;`.

/// Longest entity name, in bytes.
const LONGEST: usize = 12;

/// Common entity names. Others stay as written, which a reader understands.
#[rustfmt::skip] // One per line would fill a page.
const NAMES: &[(&str, &str)] = &[
    ("AMP", "&"), ("Aacute", "Á"), ("Agrave", "À"), ("Alpha", "Α"), ("Aring", "Å"), ("Auml", "Ä"), ("Ccedil", "Ç"),
    ("Delta", "Δ"), ("Eacute", "É"), ("GT", ">"), ("LT", "<"), ("Ntilde", "Ñ"), ("Omega", "Ω"), ("Ouml", "Ö"),
    ("QUOT", "\""), ("Sigma", "Σ"), ("Uuml", "Ü"), ("aacute", "á"), ("acirc", "â"), ("acute", "´"), ("aelig", "æ"),
    ("agrave", "à"), ("alpha", "α"), ("amp", "&"), ("apos", "'"), ("aring", "å"), ("atilde", "ã"), ("auml", "ä"),
    ("bdquo", "„"), ("beta", "β"), ("brvbar", "¦"), ("bull", "•"), ("ccedil", "ç"), ("cent", "¢"), ("check", "✓"),
    ("copy", "©"), ("crarr", "↵"), ("darr", "↓"), ("deg", "°"), ("delta", "δ"), ("divide", "÷"), ("eacute", "é"),
    ("ecirc", "ê"), ("egrave", "è"), ("emsp", " "), ("ensp", " "), ("epsilon", "ε"), ("euml", "ë"), ("euro", "€"),
    ("frac12", "½"), ("frac14", "¼"), ("frac34", "¾"), ("gamma", "γ"), ("ge", "≥"), ("gt", ">"), ("harr", "↔"),
    ("hellip", "…"), ("iacute", "í"), ("icirc", "î"), ("iexcl", "¡"), ("igrave", "ì"), ("infin", "∞"), ("iquest", "¿"),
    ("iuml", "ï"), ("lambda", "λ"), ("laquo", "«"), ("larr", "←"), ("lbrace", "{"), ("lbrack", "["), ("ldquo", "“"),
    ("le", "≤"), ("lpar", "("), ("lsaquo", "‹"), ("lsquo", "‘"), ("lt", "<"), ("mdash", "—"), ("micro", "µ"),
    ("middot", "·"), ("minus", "−"), ("mu", "μ"), ("nbsp", " "), ("ndash", "–"), ("ne", "≠"),
    ("not", "¬"), ("ntilde", "ñ"), ("num", "#"), ("oacute", "ó"), ("ocirc", "ô"), ("ograve", "ò"), ("omega", "ω"),
    ("oslash", "ø"), ("otilde", "õ"), ("ouml", "ö"), ("para", "¶"), ("permil", "‰"), ("pi", "π"), ("plusmn", "±"),
    ("pound", "£"), ("quot", "\""), ("raquo", "»"), ("rarr", "→"), ("rbrace", "}"), ("rbrack", "]"), ("rdquo", "”"),
    ("reg", "®"), ("rpar", ")"), ("rsaquo", "›"), ("rsquo", "’"), ("sbquo", "‚"), ("sect", "§"), ("shy", ""),
    ("sigma", "σ"), ("sup2", "²"), ("sup3", "³"), ("szlig", "ß"), ("tau", "τ"), ("theta", "θ"), ("thinsp", " "),
    ("times", "×"), ("trade", "™"), ("uacute", "ú"), ("uarr", "↑"), ("ucirc", "û"), ("ugrave", "ù"), ("uuml", "ü"),
    ("yacute", "ý"), ("yen", "¥"), ("yuml", "ÿ"), ("zwj", ""), ("zwnj", ""),
];

/// Passes text with its references resolved to `out`, piece by piece.
pub(super) fn decode(text: &str, mut out: impl FnMut(&str)) {
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let (before, from) = rest.split_at(at);
        if !before.is_empty() {
            out(before);
        }
        rest = match reference(from) {
            Some((Resolved::Name(text), after)) => {
                out(text);
                after
            }
            Some((Resolved::Number(character), after)) => {
                out(character.encode_utf8(&mut [0; 4]));
                after
            }
            None => {
                out("&");
                &from[1..]
            }
        };
    }
    if !rest.is_empty() {
        out(rest);
    }
}

enum Resolved {
    Name(&'static str),
    Number(char),
}

/// Parses the reference at the start of a text. Also returns the remaining text.
fn reference(text: &str) -> Option<(Resolved, &str)> {
    let inner = &text[1..];
    let end = inner.bytes().take(LONGEST + 1).position(|byte| byte == b';')?;
    let (name, after) = (&inner[..end], &inner[end + 1..]);
    let Some(number) = name.strip_prefix('#') else {
        let at = NAMES.binary_search_by_key(&name, |(known, _)| known).ok()?;
        return NAMES.get(at).map(|(_, text)| (Resolved::Name(text), after));
    };
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => number.parse(),
    };
    let code = code.ok().filter(|_| number.ends_with(|c: char| c.is_ascii_hexdigit()))?;
    // Invalid and control characters become a replacement character.
    let character =
        char::from_u32(code).filter(|c| !c.is_control() || c.is_whitespace()).unwrap_or('\u{fffd}');
    Some((Resolved::Number(character), after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &str) -> String {
        let mut all = String::new();
        decode(text, |piece| all.push_str(piece));
        all
    }

    #[test]
    fn the_names_are_in_the_order_in_which_they_are_searched() {
        assert!(NAMES.is_sorted_by_key(|(name, _)| name));
        assert!(NAMES.iter().all(|(name, _)| name.len() <= LONGEST));
    }

    #[test]
    fn references_are_resolved_and_other_ampersands_stay() {
        for (text, expected) in [
            ("a &amp; b", "a & b"),
            ("&lt;p&gt;", "<p>"),
            ("&#8364;&#x20AC;&#X20ac;", "€€€"),
            ("&amp;lt;", "&lt;"),
            ("AT&T", "AT&T"),
            ("a&b;c", "a&b;c"),
            ("&", "&"),
            ("&;", "&;"),
            ("&#;", "&#;"),
            ("&#x;", "&#x;"),
            ("&#0;&#27;&#xD800;&#99999999;", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
            ("&unknown;", "&unknown;"),
            ("&🦀;", "&🦀;"),
        ] {
            assert_eq!(decoded(text), expected, "{text}");
        }
    }
}
