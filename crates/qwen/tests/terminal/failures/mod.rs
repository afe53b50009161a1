//! What may go wrong: with the terminal, with what is typed, with what is shown, and with those the session
//! waits for.

mod input;
mod text;
mod tty;
mod waiting;
