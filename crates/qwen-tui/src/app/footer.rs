//! The footer: which facts it shows is configurable.

use super::Terminal;
use crate::text::{Style, StyledLine};

macro_rules! items {
    ($($variant:ident $name:literal;)*) => {
        /// A fact in the footer.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum FooterItem {
            $($variant,)*
        }

        impl FooterItem {
            /// All of them, in their default order.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name in settings.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The item with this name.
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|item| item.name() == name)
            }
        }
    };
}

items! {
    Model "model";
    Mode "mode";
    Context "context";
    Cost "cost";
    Directory "directory";
    Branch "branch";
    Queue "queue";
}

impl Terminal {
    pub(super) fn footer(&self) -> StyledLine {
        let mut parts: Vec<String> = Vec::new();
        if let Some(vim) = self.vim.as_ref() {
            parts.push(if vim.is_normal() { "NORMAL" } else { "INSERT" }.to_owned());
        }
        parts.extend(self.options.footer.iter().map(|item| self.fact(*item)));
        parts.retain(|part| !part.is_empty());
        let mut line = StyledLine::default();
        for part in parts {
            let dot = if line.spans.is_empty() { String::new() } else { format!(" {} ", self.marks.dot) };
            let _ = line.push_if_fits(&format!("{dot}{part}"), Style::DIM, self.options.columns);
        }
        line
    }

    /// The text of an item; empty if it is unknown.
    fn fact(&self, item: FooterItem) -> String {
        match item {
            FooterItem::Model => self.options.model.clone(),
            FooterItem::Mode => self.options.mode.clone(),
            FooterItem::Context if self.tokens == 0 => String::new(),
            FooterItem::Context => {
                let share = match self.options.window {
                    0 => String::new(),
                    window => format!(" ({}%)", self.tokens.saturating_mul(100) / window),
                };
                format!("{} tokens{share}", thousands(self.tokens))
            }
            FooterItem::Cost if self.cost > 0.0 => format!("${:.2}", self.cost),
            FooterItem::Cost => String::new(),
            FooterItem::Directory => self.options.directory.clone(),
            FooterItem::Branch => self.options.branch.clone(),
            FooterItem::Queue if self.queue.is_empty() => String::new(),
            FooterItem::Queue => format!("{} queued", self.queue.len()),
        }
    }
}

fn thousands(count: u64) -> String {
    if count < 10_000 { count.to_string() } else { format!("{}k", count / 1000) }
}
