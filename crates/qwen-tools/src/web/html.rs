//! Converts HTML to text for the model: headings, lists, tables, code and links become Markdown, other markup
//! is removed. A single pass without a tree, so the time is linear in the length of the page.

use qwen_http::Url;

use super::entities::decode;
use super::tag::{Tag, until_close};
use super::writer::Writer;

/// Elements whose content is not text.
const SKIPPED: &[&str] = &[
    "script", "style", "svg", "template", "iframe", "canvas", "audio", "video", "object", "math", "noframes",
];
/// Deepest level of list indentation.
const DEEPEST: usize = 8;
/// Longest link URL that is included, in bytes.
const LONGEST_LINK: usize = 400;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Readable {
    /// Empty if the page has no title.
    pub title: String,
    pub text: String,
}

/// Converts a page. `links` includes the URLs of links.
pub(crate) fn readable(html: &str, base: &Url, links: bool) -> Readable {
    let mut page = Converter {
        base,
        links,
        title: String::new(),
        writer: Writer::default(),
        lists: Vec::new(),
        cells: 0,
    };
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let (text, markup) = rest.split_at(at);
        page.writer.text(text);
        rest = page.markup(markup);
    }
    page.writer.text(rest);
    Readable { title: page.title, text: page.writer.finish() }
}

struct Converter<'a> {
    base: &'a Url,
    links: bool,
    title: String,
    writer: Writer,
    /// Open lists. For a numbered one, the number of its last entry.
    lists: Vec<Option<u32>>,
    /// Cells in the current table row.
    cells: usize,
}

impl Converter<'_> {
    /// Processes the markup at the start of `html`, which begins with `<`. Returns the remaining text.
    fn markup<'a>(&mut self, html: &'a str) -> &'a str {
        if let Some(comment) = html.strip_prefix("<!--") {
            return comment.split_once("-->").map_or("", |(_, after)| after);
        }
        if html.starts_with("<!") || html.starts_with("<?") {
            return html.split_once('>').map_or("", |(_, after)| after);
        }
        let Some((tag, after)) = Tag::read(html) else {
            self.writer.text("<");
            return &html[1..];
        };
        if tag.closing {
            self.close(&tag.name);
        } else if tag.name == "title" {
            let (title, after) = until_close(after, "title");
            if self.title.is_empty() {
                let mut writer = Writer::default();
                writer.text(title);
                self.title = writer.finish();
            }
            return after;
        } else if SKIPPED.contains(&tag.name.as_str()) {
            return until_close(after, &tag.name).1;
        } else {
            self.open(&tag);
        }
        after
    }

    fn open(&mut self, tag: &Tag<'_>) {
        let writer = &mut self.writer;
        match tag.name.as_str() {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                writer.break_lines(2);
                let level = usize::from(tag.name.as_bytes().get(1).map_or(1, |digit| digit - b'0'));
                writer.mark(&format!("{} ", "#".repeat(level)));
            }
            "ul" | "ol" => {
                writer.break_lines(if self.lists.is_empty() { 2 } else { 1 });
                self.lists.push((tag.name == "ol").then_some(0));
            }
            "li" => {
                writer.break_lines(1);
                let indent = "  ".repeat(self.lists.len().saturating_sub(1).min(DEEPEST));
                let bullet = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number = number.saturating_add(1);
                        format!("{indent}{number}. ")
                    }
                    _ => format!("{indent}- "),
                };
                writer.mark(&bullet);
            }
            "tr" => {
                writer.break_lines(1);
                self.cells = 0;
            }
            "td" | "th" => {
                if self.cells > 0 {
                    writer.mark(" | ");
                }
                self.cells += 1;
            }
            "br" => writer.break_lines(1),
            "hr" => {
                writer.break_lines(2);
                writer.mark("---");
                writer.break_lines(2);
            }
            "pre" => writer.begin_code(),
            "code" | "kbd" | "samp" => writer.tick(),
            "img" => {
                if let Some(alt) = tag.attribute("alt").filter(|alt| !alt.trim().is_empty()) {
                    writer.text(" [image: ");
                    writer.text(alt);
                    writer.text("] ");
                }
            }
            "a" if self.links => {
                let url = tag.attribute("href").and_then(|href| self.base_join(href));
                self.writer.begin_link(url);
            }
            name => writer.break_lines(line_breaks_around(name)),
        }
    }

    fn close(&mut self, name: &str) {
        let writer = &mut self.writer;
        match name {
            "ul" | "ol" => {
                self.lists.pop();
                writer.break_lines(if self.lists.is_empty() { 2 } else { 1 });
            }
            "pre" => writer.end_code(),
            "code" | "kbd" | "samp" => writer.tick(),
            "a" => writer.end_link(),
            name => writer.break_lines(line_breaks_around(name)),
        }
    }

    /// Resolves a link. Returns `None` if it cannot be fetched or points into the same page.
    fn base_join(&self, href: &str) -> Option<String> {
        let mut address = String::new();
        decode(href.trim(), |piece| address.push_str(piece));
        if address.starts_with('#') || address.is_empty() {
            return None;
        }
        let url = self.base.join(&address).ok()?.to_string();
        (url.len() <= LONGEST_LINK).then_some(url)
    }
}

/// Number of line breaks before and after an element.
fn line_breaks_around(name: &str) -> usize {
    match name {
        "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "table" | "blockquote" | "figure" | "dl"
        | "article" | "section" | "main" | "header" | "footer" | "nav" | "aside" | "form" | "fieldset"
        | "details" => 2,
        "div" | "li" | "tr" | "dt" | "dd" | "address" | "summary" | "figcaption" | "caption" | "option"
        | "legend" | "body" | "thead" | "tbody" => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn made(html: &str) -> Readable {
        readable(html, &Url::parse("https://h/a/b").unwrap(), true)
    }

    fn text(html: &str) -> String {
        made(html).text
    }

    #[test]
    fn a_page_reads_as_its_author_meant_it() {
        let page = made(
            "<!DOCTYPE html><html><head><title>The &amp; page</title><style>p{}</style></head><body>\n\
             <h1>Hello</h1><p>One\n   two <b>three</b>.</p><p>Next<br>line</p>\
             <ul><li>a<li>b<ul><li>c</ul></ul><ol><li>x</li><li>y</li></ol>\
             <table><tr><th>k<th>v</tr><tr><td>1<td>2</tr></table>\
             <pre>  let x =\n    1 &lt; 2;\n</pre><p>Call <code>f()</code> or <a href='../c?d=1&amp;e'>this</a>.\
             <script>if (a < b) alert('</p>')</script><img alt='a dog' src=x><!-- <p>not this --><hr>end</body>",
        );
        assert_eq!(page.title, "The & page");
        assert_eq!(
            page.text,
            "# Hello\n\nOne two three.\n\nNext\nline\n\n- a\n- b\n  - c\n\n1. x\n2. y\n\nk | v\n1 | 2\n\n\
             ```\n  let x =\n    1 < 2;\n```\n\nCall `f()` or [this](https://h/c?d=1&e). [image: a dog]\n\n---\n\nend"
        );
    }

    #[test]
    fn links_are_kept_where_they_lead_somewhere() {
        for (html, expected) in [
            ("<a href=x>t</a>", "[t](https://h/a/x)"),
            ("<a href='//o/p'>t</a>", "[t](https://o/p)"),
            ("<a href='#x'>t</a>", "t"),
            ("<a href='javascript:alert(1)'>t</a>", "t"),
            ("<a name=x>t</a>", "t"),
            ("<a href=x></a>after", "after"),
            ("a <a href=x> b </a> c", "a [b](https://h/a/x) c"),
            ("<a href=x>one<a href=y>two</a>", "[one](https://h/a/x)[two](https://h/a/y)"),
            ("<a href=x>open", "[open](https://h/a/x)"),
        ] {
            assert_eq!(text(html), expected, "{html}");
        }
        let base = Url::parse("https://h/").unwrap();
        assert_eq!(readable("<a href=x>t</a>", &base, false).text, "t");
    }

    #[test]
    fn odd_markup_breaks_nothing() {
        for (html, expected) in [
            ("a < b", "a < b"),
            ("a<b", "a"),
            ("1 <2> 3", "1 <2> 3"),
            ("<p", ""),
            ("<p title='>'>x", "x"),
            ("<p title='never closed>x", ""),
            ("<>x</>", "<>x</>"),
            ("<!-- never closed", ""),
            ("<script>never closed", ""),
            ("<SCRIPT>x</ScRiPt >y", "y"),
            ("</p></p>x</ul></pre></a>", "x"),
            ("<div/>x<br/>y", "x\ny"),
            ("<p =x =>y", "y"),
            ("plain", "plain"),
            ("", ""),
        ] {
            assert_eq!(text(html), expected, "{html}");
        }
    }

    #[test]
    fn invisible_parts_of_a_page_are_left_out() {
        assert_eq!(text("a\u{200b}b\u{e0041}c\u{202e}d\u{1b}[31m&#x202e;"), "abcd[31m");
        assert_eq!(text("\u{1f469}\u{200d}\u{1f680}"), "\u{1f469}\u{200d}\u{1f680}");
    }

    #[test]
    fn a_large_page_of_nothing_but_beginnings_is_read_in_one_pass() {
        for piece in [
            "<",
            "<a ",
            "<a href='",
            "</",
            "<!--",
            "<script>",
            "&",
            "<p>",
            "<ul><li>",
            "<a href=x>",
            "</script",
        ] {
            let html = piece.repeat(200_000);
            assert!(text(&html).len() < 10_000_000, "{piece}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(html in prop::collection::vec(prop_oneof![
            Just("<"), Just(">"), Just("</"), Just("<a href="), Just("<pre>"), Just("</pre>"), Just("<li>"), Just("'"),
            Just("\""), Just("<!--"), Just("-->"), Just("&"), Just("amp;"), Just("<td>"), Just("x"), Just(" "), Just("\n"),
            Just("é"), Just("🦀"), Just("<code>"), Just("<title>"), Just("=")], 0..40)) {
            let page = made(&html.concat());
            prop_assert_eq!(page.text.trim_end(), &page.text);
        }
    }
}
