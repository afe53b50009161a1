//! The footer: which facts it shows is configurable.

use super::Terminal;
use super::keys::YOLO;
use crate::text::{Color, Style, StyledLine};

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
        if let Some(vim) = self.composer.vim.as_ref() {
            parts.push(if vim.is_normal() { "NORMAL" } else { "INSERT" }.to_owned());
        }
        let mut line = StyledLine::default();
        if self.options.mode == YOLO {
            // Visible whatever the footer shows.
            line.push(" YOLO: nothing is asked ", Style { reverse: true, ..Style::color(Color::Red).bold() });
        }
        parts.extend(self.options.footer.iter().map(|item| self.fact(*item)));
        parts.retain(|part| !part.is_empty());
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
            FooterItem::Context if self.status.tokens == 0 => String::new(),
            FooterItem::Context => {
                let share = match self.options.window {
                    0 => String::new(),
                    window => format!(" ({}%)", self.status.tokens.saturating_mul(100) / window),
                };
                format!("{} tokens{share}", thousands(self.status.tokens))
            }
            FooterItem::Cost if self.status.cost > 0.0 => format!("${:.2}", self.status.cost),
            FooterItem::Cost => String::new(),
            FooterItem::Directory => self.options.workspace.directory.clone(),
            FooterItem::Branch => self.options.workspace.branch.clone(),
            FooterItem::Queue if self.work.queue.is_empty() => String::new(),
            FooterItem::Queue => format!("{} queued", self.work.queue.len()),
        }
    }
}

fn thousands(count: u64) -> String {
    if count < 10_000 { count.to_string() } else { format!("{}k", count / 1000) }
}
