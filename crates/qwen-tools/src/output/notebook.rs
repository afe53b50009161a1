//! The cells of a Jupyter notebook as text.

use std::fmt::Write;

use serde_json::Value;

/// Most bytes of one output that are shown.
const MAX_OUTPUT: usize = 10_000;

/// Renders the cells with their outputs; none if the text is not a notebook.
pub(crate) fn render(text: &str) -> Option<String> {
    let notebook: Value = serde_json::from_str(text).ok()?;
    let cells = notebook.get("cells")?.as_array()?;
    let mut rendered = String::new();
    for (at, cell) in cells.iter().enumerate() {
        let id = cell["id"].as_str().map_or_else(|| format!("cell-{at}"), str::to_owned);
        let kind = cell["cell_type"].as_str().unwrap_or("code");
        // Writing to a string cannot fail.
        let _ = writeln!(rendered, "<cell id=\"{id}\" type=\"{kind}\">");
        push_block(&joined(&cell["source"]), &mut rendered);
        for output in cell["outputs"].as_array().into_iter().flatten() {
            rendered.push_str("<output>\n");
            push_block(&output_text(output), &mut rendered);
            rendered.push_str("</output>\n");
        }
        rendered.push_str("</cell>\n");
    }
    Some(rendered)
}

fn push_block(text: &str, out: &mut String) {
    out.push_str(text);
    if !text.is_empty() && !text.ends_with('\n') {
        out.push('\n');
    }
}

/// A text that is stored whole or as a list of lines.
fn joined(text: &Value) -> String {
    match text {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

fn output_text(output: &Value) -> String {
    let data = &output["data"];
    let text = match output["output_type"].as_str() {
        Some("stream") => joined(&output["text"]),
        Some("error") => {
            let traceback = joined(&output["traceback"]);
            let name = |key: &str| output[key].as_str().unwrap_or_default().to_owned();
            if traceback.is_empty() { format!("{}: {}", name("ename"), name("evalue")) } else { traceback }
        }
        _ if data.get("text/plain").is_some() => joined(&data["text/plain"]),
        _ => {
            let kinds: Vec<&str> =
                data.as_object().into_iter().flatten().map(|(kind, _)| kind.as_str()).collect();
            format!("[{}, not shown]", kinds.join(", "))
        }
    };
    let text = super::plain_output::plain(&text);
    if text.len() <= MAX_OUTPUT {
        return text;
    }
    let end = super::boundary::floor_boundary(&text, MAX_OUTPUT);
    format!("{}\n[… {} more bytes]", &text[..end], text.len() - end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_shown_with_their_ids_and_outputs() {
        let notebook = r##"{"nbformat":4,"cells":[
            {"cell_type":"markdown","source":["# One\n","two"]},
            {"id":"b7","cell_type":"code","source":"print(1)","outputs":[
                {"output_type":"stream","text":["1\n"]},
                {"output_type":"display_data","data":{"image/png":"AAAA"}},
                {"output_type":"error","ename":"E","evalue":"bad","traceback":["\u001b[31mE\u001b[0m: bad"]}]}]}"##;
        assert_eq!(
            render(notebook).unwrap(),
            "<cell id=\"cell-0\" type=\"markdown\">\n# One\ntwo\n</cell>\n<cell id=\"b7\" type=\"code\">\nprint(1)\n\
             <output>\n1\n</output>\n<output>\n[image/png, not shown]\n</output>\n<output>\nE: bad\n</output>\n</cell>\n"
        );
        assert_eq!(render("{}"), None);
        assert_eq!(render("# text"), None);
    }
}
