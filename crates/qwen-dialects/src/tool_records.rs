//! The forms of confirmations and tool displays that the `core` and `qwen` dialects share.

/// Defines what someone is asked to agree to: `Edit` with the given fields, and the variants that the
/// dialects write alike. Every variant has the fields in parentheses behind its title.
macro_rules! confirmation_records {
    (
        $(#[$meta:meta])*
        $name:ident ( $($(#[$common_meta:meta])* $common:ident: $common_type:ty,)* ) { $($edit:tt)* }
    ) => {
        $(#[$meta])*
        pub enum $name<'a> {
            /// The call would change a file.
            Edit {
                /// A title.
                title: Cow<'a, str>,
                $($(#[$common_meta])* $common: $common_type,)*
                $($edit)*
            },
            /// The call would run a command.
            Exec {
                /// A title.
                title: Cow<'a, str>,
                $($(#[$common_meta])* $common: $common_type,)*
                /// The command line.
                command: Cow<'a, str>,
                /// The programs that the command starts.
                root_command: Cow<'a, str>,
            },
            /// The call would use a tool of an MCP server.
            Mcp {
                /// A title.
                title: Cow<'a, str>,
                $($(#[$common_meta])* $common: $common_type,)*
                /// The name of the MCP server.
                server_name: Cow<'a, str>,
                /// The name of the tool on its server.
                tool_name: Cow<'a, str>,
                /// The display name of the tool.
                tool_display_name: Cow<'a, str>,
            },
            /// Any other call.
            Info {
                /// A title.
                title: Cow<'a, str>,
                $($(#[$common_meta])* $common: $common_type,)*
                /// A description of the call.
                prompt: Cow<'a, str>,
                /// URLs that the call would fetch.
                #[serde(default, skip_serializing_if = "Vec::is_empty")]
                urls: Vec<Cow<'a, str>>,
            },
            /// A plan that needs approval.
            Plan {
                /// A title.
                title: Cow<'a, str>,
                $($(#[$common_meta])* $common: $common_type,)*
                /// The plan, in Markdown.
                plan: Cow<'a, str>,
            },
        }

        impl<'a> $name<'a> {
            /// The record of `confirmation`; `edit` makes the variant of a changed file.
            fn from_confirmation(
                confirmation: &'a Confirmation,
                $($common: $common_type,)*
                edit: impl FnOnce(Cow<'a, str>, &'a FileDiff) -> Self,
            ) -> Self {
                let title = confirmation_title(confirmation);
                match confirmation {
                    Confirmation::Edit(diff) => edit(title, diff),
                    Confirmation::Exec { command, root_command } => Self::Exec {
                        title,
                        $($common,)*
                        command: Cow::Borrowed(command),
                        root_command: Cow::Borrowed(root_command),
                    },
                    Confirmation::Mcp { server, tool, display } => Self::Mcp {
                        title,
                        $($common,)*
                        server_name: Cow::Borrowed(server),
                        tool_name: Cow::Borrowed(tool),
                        tool_display_name: Cow::Borrowed(display),
                    },
                    Confirmation::Info { prompt, urls } => Self::Info {
                        title,
                        $($common,)*
                        prompt: Cow::Borrowed(prompt),
                        urls: urls.iter().map(|url| Cow::Borrowed(&**url)).collect(),
                    },
                    Confirmation::Plan { plan } => Self::Plan { title, $($common,)* plan: Cow::Borrowed(plan) },
                }
            }
        }
    };
}
pub(crate) use confirmation_records;

/// Defines what people are shown of a tool's work: the given variants, and those that the dialects write
/// alike. The two names are the fields for the sub-agent and its task.
macro_rules! display_records {
    ($(#[$meta:meta])* $name:ident { $($own:tt)* } $agent:ident $description:ident) => {
        $(#[$meta])*
        pub enum $name<'a> {
            $($own)*
            /// A to-do list.
            TodoList {
                /// The items of the list.
                todos: Vec<TodoRecord<'a>>,
            },
            /// A plan for approval.
            PlanSummary {
                /// A one-line summary.
                message: Cow<'a, str>,
                /// The plan, in Markdown.
                plan: Cow<'a, str>,
            },
            /// The progress of a sub-agent.
            TaskExecution {
                /// The sub-agent's name.
                $agent: Cow<'a, str>,
                /// The task given to the sub-agent.
                $description: Cow<'a, str>,
                /// `running`, `completed`, `failed` or `cancelled`
                status: Cow<'a, str>,
                /// The number of tool calls so far.
                tool_calls: u64,
                /// The tokens used so far.
                tokens: u64,
                /// The sub-agent's final report.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                result: Option<Cow<'a, str>>,
            },
        }

        impl<'a> $name<'a> {
            fn todos(todos: &'a [Todo]) -> Self {
                Self::TodoList { todos: todos.iter().map(TodoRecord::from).collect() }
            }

            fn plan(message: &'a str, plan: &'a str) -> Self {
                Self::PlanSummary { message: Cow::Borrowed(message), plan: Cow::Borrowed(plan) }
            }

            fn task(task: &'a TaskProgress) -> Self {
                Self::TaskExecution {
                    $agent: Cow::Borrowed(&task.agent),
                    $description: Cow::Borrowed(&task.description),
                    status: Cow::Borrowed(task.status),
                    tool_calls: task.tool_calls,
                    tokens: task.tokens,
                    result: task.result.as_deref().map(Cow::Borrowed),
                }
            }
        }
    };
}
pub(crate) use display_records;
