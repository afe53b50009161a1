/// Evaluates an expression of integers such as `1 + 2 - 3`.
pub fn evaluate(text: &str) -> Result<i64, String> {
    let mut result = 0;
    let mut sign = 1;
    for token in text.split_whitespace() {
        match token {
            "+" => sign = 1,
            "-" => sign = -1,
            number => result += sign * number.parse::<i64>().map_err(|_| format!("`{number}` is not a number"))?,
        }
    }
    Ok(result)
}
