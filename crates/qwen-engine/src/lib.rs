//! qwen-engine
