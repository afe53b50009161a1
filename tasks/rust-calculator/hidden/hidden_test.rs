#[path = "calculator.rs"]
mod calculator;
use calculator::evaluate;

#[test]
fn precedence() {
    assert_eq!(evaluate("1 + 2 * 3"), Ok(7));
    assert_eq!(evaluate("8/2/2-1"), Ok(1));
    assert_eq!(evaluate("2*3+4*5"), Ok(26));
}

#[test]
fn unary_minus() {
    assert_eq!(evaluate("-2 * -3"), Ok(6));
    assert_eq!(evaluate("4 - -1"), Ok(5));
}

#[test]
fn errors() {
    for text in ["1 / 0", "", "1 +", "1 2", "* 3", "x"] {
        assert!(evaluate(text).is_err(), "{text}");
    }
}
