//! Colours for code: comments, strings, numbers and words, by a table per family of languages.
//!
//! Each line is coloured separately, so a comment or string over several lines is only recognised on its
//! first. That limits the cost to one pass and works while the answer streams; decision 0010 has the
//! measurements of real highlighters.

use crate::text::{Color, Style, StyledLine};

struct Family {
    names: &'static [&'static str],
    comments: &'static [&'static str],
    quotes: &'static str,
    words: &'static str,
}

const FAMILIES: &[Family] = &[
    Family {
        names: &["rust", "rs"],
        comments: &["//"],
        quotes: "\"",
        words: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while",
    },
    Family {
        names: &["python", "py"],
        comments: &["#"],
        quotes: "\"'",
        words: "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield",
    },
    Family {
        names: &["javascript", "js", "jsx", "typescript", "ts", "tsx", "json", "jsonc"],
        comments: &["//"],
        quotes: "\"'`",
        words: "as async await break case catch class const continue default delete do else enum export extends false finally for from function if implements import in instanceof interface let new null of private public readonly return static super switch this throw true try type typeof undefined var void while yield",
    },
    Family {
        names: &[
            "c", "cpp", "c++", "h", "hpp", "java", "go", "kotlin", "kt", "swift", "cs", "csharp", "scala",
            "php",
        ],
        comments: &["//"],
        quotes: "\"'`",
        words: "auto bool boolean break byte case catch chan char class const continue default defer do double else enum extern extends false final float for fun func go goto if implements import in int interface long map namespace new nil null package private protected public range return select short signed sizeof static string struct super switch template this throw true try type typedef union unsigned using var void volatile while",
    },
    Family {
        names: &["bash", "sh", "shell", "zsh", "fish", "console", "dockerfile", "make", "makefile"],
        comments: &["#"],
        quotes: "\"'",
        words: "case do done elif else esac exit export fi for function if in local return set then until while FROM RUN COPY ENV CMD ENTRYPOINT WORKDIR ARG",
    },
    Family {
        names: &[
            "toml",
            "yaml",
            "yml",
            "ini",
            "conf",
            "properties",
            "ruby",
            "rb",
            "perl",
            "r",
            "elixir",
            "ex",
        ],
        comments: &["#"],
        quotes: "\"'",
        words: "true false null nil def end do class module if else elsif unless while for in return require",
    },
    Family {
        names: &["sql", "lua", "haskell", "hs"],
        comments: &["--"],
        quotes: "\"'",
        words: "select from where and or not null insert into values update set delete create table index primary key join left right inner outer on group by order limit as distinct union having SELECT FROM WHERE AND OR NOT NULL INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE INDEX PRIMARY KEY JOIN LEFT RIGHT INNER OUTER ON GROUP BY ORDER LIMIT AS DISTINCT UNION HAVING local function end then elseif repeat until nil data instance let module newtype type",
    },
];

/// A line of code in colours. The text is not changed; it must be clean.
pub fn highlight(language: &str, text: &str) -> StyledLine {
    if matches!(language, "diff" | "patch") {
        let style = match text.as_bytes().first() {
            Some(b'+') => Style::color(Color::Green),
            Some(b'-') => Style::color(Color::Red),
            Some(b'@') => Style::color(Color::Cyan),
            _ => Style::PLAIN,
        };
        return StyledLine::styled(text, style);
    }
    match FAMILIES.iter().find(|family| family.names.contains(&language)) {
        Some(family) => scan(family, text),
        None => StyledLine::plain(text),
    }
}

fn scan(family: &Family, text: &str) -> StyledLine {
    let mut line = StyledLine::default();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (length, style) = if family.comments.iter().any(|mark| rest.starts_with(mark)) {
            (rest.len(), Style::DIM)
        } else if family.quotes.contains(c) {
            (string_length(rest, c), Style::color(Color::Green))
        } else if c.is_alphabetic() || c == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let is_word = family.words.split(' ').any(|word| word == &rest[..end]);
            (end, if is_word { Style::color(Color::Magenta) } else { Style::PLAIN })
        } else if c.is_ascii_digit() {
            let end =
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.').unwrap_or(rest.len());
            (end, Style::color(Color::Yellow))
        } else {
            (c.len_utf8(), Style::PLAIN)
        };
        line.push(&rest[..length], style);
        rest = &rest[length..];
    }
    line
}

fn string_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_never_change_the_text() {
        let lines = ["let x = \"a\\\"b\"; // done", "def f(x): # é", "'unclosed", "日本 = 1.5e3", ""];
        for line in lines {
            for language in ["rust", "python", "js", "sql", "unknown", "diff"] {
                assert_eq!(highlight(language, line).text(), line);
            }
        }
        assert_eq!(highlight("rust", "let x").spans[0].style, Style::color(Color::Magenta));
    }
}
