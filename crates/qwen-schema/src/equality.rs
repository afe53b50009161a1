//! When JSON values are the same data, and which types they have.

use std::cmp::Ordering;

use serde_json::{Number, Value};

pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if is_whole(number) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

pub(crate) fn is_of_type(value: &Value, name: &str) -> bool {
    let own = type_of(value);
    own == name || (name == "number" && own == "integer")
}

fn is_whole(number: &Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn exact(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// Compares numbers by value: whole ones exactly, others as far as a double tells them apart.
pub(crate) fn compare(one: &Number, other: &Number) -> Option<Ordering> {
    match (exact(one), exact(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

pub(crate) fn is_multiple(number: &Number, step: &Number) -> bool {
    if let (Some(number), Some(step)) = (exact(number), exact(step)) {
        return step != 0 && number % step == 0;
    }
    let (Some(number), Some(step)) = (number.as_f64(), step.as_f64()) else { return true };
    let times = number / step;
    // 0.3 is a multiple of 0.1, though not to the last bit.
    times.is_finite() && (times - times.round()).abs() <= times.abs().max(1.0) * 1e-12
}

/// True for the same data: numbers compare by value, objects regardless of order.
pub(crate) fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => compare(a, b) == Some(Ordering::Equal),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| is_equal(a, b)))
        }
        _ => one == other,
    }
}
