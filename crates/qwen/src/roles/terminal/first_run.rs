//! What a new user without a configured model can do: keys that are set, servers that run here, the demo.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use crate::settings::Invocation;

/// Variables of providers whose servers speak OpenAI's wire, and their addresses.
const PROVIDERS: &[(&str, &str)] = &[
    ("OPENROUTER_API_KEY", "https://openrouter.ai/api/v1"),
    ("DEEPSEEK_API_KEY", "https://api.deepseek.com/v1"),
    ("GEMINI_API_KEY", "https://generativelanguage.googleapis.com/v1beta/openai"),
    ("GROQ_API_KEY", "https://api.groq.com/openai/v1"),
    ("MISTRAL_API_KEY", "https://api.mistral.ai/v1"),
    ("MODELSCOPE_API_KEY", "https://api-inference.modelscope.cn/v1"),
    ("TOGETHER_API_KEY", "https://api.together.xyz/v1"),
    ("XAI_API_KEY", "https://api.x.ai/v1"),
];

/// The usual ports of model servers on this machine.
const SERVERS: &[(u16, &str)] =
    &[(11434, "Ollama"), (8000, "vLLM"), (1234, "LM Studio"), (8080, "llama.cpp"), (30000, "SGLang")];

/// A local server accepts a connection at once or not at all.
const TIME_LIMIT: Duration = Duration::from_millis(50);

/// The ways to a model that were found, as lines.
pub fn advice(invocation: &Invocation) -> Vec<String> {
    let mut lines = Vec::new();
    for (variable, address) in PROVIDERS {
        if invocation.var(variable).is_some_and(|value| !value.is_empty()) {
            lines.push(format!(
                "{variable} is set: OPENAI_API_KEY=${variable} qwen --openai-base-url {address} --model NAME"
            ));
        }
    }
    for (port, name) in SERVERS {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
        if TcpStream::connect_timeout(&address, TIME_LIMIT).is_ok() {
            lines.push(format!(
                "A server listens on port {port} ({name}?): \
                 OPENAI_API_KEY=none qwen --openai-base-url http://127.0.0.1:{port}/v1 --model NAME"
            ));
        }
    }
    lines.push("Try it without a model: qwen --model demo".to_owned());
    lines
}
